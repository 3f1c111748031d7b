"""Measures the peak of memory in training and translating, in MB (10^6 bytes)."""

from . import training, translation

UPDATES = 4


def measure(bench):
    materials = bench.materials
    training_precision = training.fast_precision(bench)
    for config in ["tiny"] if bench.quick else ["tiny", "base"]:
        programs = {"heed": lambda: training.heed(bench, config, UPDATES, training_precision)[1]}
        if bench.peers.has("torch"):
            programs["PyTorch"] = lambda: training.pytorch(bench, config, UPDATES, training_precision)["peak_mb"]
        bench.compare(f"training {config}, {training_precision}", "MB", programs)
    models = [("the model given" if materials.model_given else "tiny", materials.tiny, None, 1000)]
    if not bench.quick:
        models.append(("base", materials.untrained("base"), translation.LENGTH, 100))
    for name, model, length, count in models:
        text = materials.first_lines(materials.test, 200 if bench.quick else count)
        peer = translation.Peer(bench, model, text) if translation.has_peer(bench) else None
        for beam in (1, 4):
            programs = {"heed": lambda: translation.heed_memory(bench, model, text, beam, "int8", length)}
            if peer:
                programs["CTranslate2"] = lambda: peer.translate("int8", beam, length)["peak_mb"]
            bench.compare(f"translating {name}, int8, {'greedy' if beam == 1 else f'beam {beam}'}", "MB", programs)
