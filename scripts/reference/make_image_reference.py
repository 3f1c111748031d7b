#!/usr/bin/env python3
"""Writes tests/image/reference/: small image files of every kind that heed reads, and what Pillow makes of them.

The PNG and PNM files are written by the functions below, because Pillow does not write all kinds. images.json has,
for each file, what Pillow decodes, as RGB and as grey: the samples of JPEG files, which may differ a little from one
libjpeg to another, and hashes (FNV-1a, 64 bits) of other files' samples. resize.json, fit.json and operations.json
have hashes of scaled images and of what the operations of RandAugment make. These operations are functions of Pillow;
apply() calls them with the arguments that torchvision 0.29 (transforms/autoaugment.py, transforms/functional.py)
computes for them. What Pillow does not do as heed does (16-bit grey, transparent colours of less than 8 bits) is
computed here. Also writes the seeds of the fuzz target images. Needs Pillow from PyPI (the files record the
versions). Run from the top of the source tree:
    python3 scripts/reference/make_image_reference.py
"""
import io
import json
import math
import pathlib
import random
import struct
import zlib

import PIL
from PIL import Image, ImageEnhance, ImageOps, features

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"
FOLDER = TESTS / "image" / "reference"
SEEDS = TESTS / "fuzz" / "seeds" / "images"
VERSIONS = {"made_by": "scripts/reference/make_image_reference.py", "Pillow": PIL.__version__,
            "libjpeg-turbo": features.version("libjpeg_turbo"), "zlib": features.version("zlib")}
WIDTH, HEIGHT = 13, 9


def fnv(data):
    """The hash FNV-1a of bytes, as 16 hexadecimal digits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return "%016x" % value


def samples(seed, width, height, channels, maximum):
    """Rows of samples 0..maximum: a gradient with noise."""
    rng = random.Random(seed)
    rows = []
    for y in range(height):
        row = []
        for x in range(width):
            for c in range(channels):
                smooth = (x / width + y / height + c / 3) % 1
                row.append(round(maximum * min(1, max(0, 0.8 * smooth + 0.2 * rng.random()))))
        rows.append(row)
    return rows


# PNG

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed(row, bits):
    """The bytes of a row of samples of 1 to 16 bits."""
    if bits == 16:
        return b"".join(struct.pack(">H", sample) for sample in row)
    text = "".join(format(sample, "0%db" % bits) for sample in row)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8))


def paeth(left, above, corner):
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))


def filtered(rows, distance):
    """The rows of bytes with PNG's filters, which take turns."""
    out = b""
    before = bytes(len(rows[0])) if rows else b""
    for number, row in enumerate(rows):
        kind = number % 5
        out += bytes([kind])
        for i, byte in enumerate(row):
            left = row[i - distance] if i >= distance else 0
            corner = before[i - distance] if i >= distance else 0
            guess = [0, left, before[i], (left + before[i]) // 2, paeth(left, before[i], corner)][kind]
            out += bytes([(byte - guess) % 256])
        before = row
    return out


def png(rows, channels, bits, kind, interlaced=False, extra=b""):
    """A PNG file. `kind` is the colour type, `extra` holds the chunks between IHDR and IDAT."""
    width, height = len(rows[0]) // channels, len(rows)
    data = b""
    for left, top, across, down in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        part = [[row[x * channels + c] for x in range(left, width, across) for c in range(channels)]
                for row in rows[top::down]]
        if part and part[0]:
            data += filtered([packed(row, bits) for row in part], max(1, channels * bits // 8))
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(data, 9)) +
            chunk(b"IEND", b""))


def png_files():
    """Names, files, and None or the image that Pillow should make of the file."""
    GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
    palette = bytes(random.Random(5).randrange(256) for _ in range(3 * 256))
    for bits in (1, 2, 4, 8, 16):
        yield "grey%d.png" % bits, png(samples(bits, WIDTH, HEIGHT, 1, 2**bits - 1), 1, bits, GREY), None
    for bits in (1, 2, 4, 8):
        plte = chunk(b"PLTE", palette[:3 * 2**bits])
        rows = samples(10 + bits, WIDTH, HEIGHT, 1, 2**bits - 1)
        yield "palette%d.png" % bits, png(rows, 1, bits, PALETTE, extra=plte), None
    trns = chunk(b"PLTE", palette[:48]) + chunk(b"tRNS", bytes(range(0, 250, 25)))
    yield "palette-transparent.png", png(samples(20, WIDTH, HEIGHT, 1, 15), 1, 4, PALETTE, extra=trns), None
    rgb = samples(21, WIDTH, HEIGHT, 3, 255)
    yield "rgb8.png", png(rgb, 3, 8, RGB), None
    key = chunk(b"tRNS", struct.pack(">HHH", *rgb[3][6:9]))
    yield "rgb-key.png", png(rgb, 3, 8, RGB, extra=key), None
    grey = samples(22, WIDTH, HEIGHT, 1, 255)
    yield "grey-key.png", png(grey, 1, 8, GREY, extra=chunk(b"tRNS", bytes([0, grey[4][5]]))), None
    grey = samples(27, WIDTH, HEIGHT, 1, 15)
    opaque_grey = bytes(255 if sample == 7 else 17 * sample for row in grey for sample in row)
    expected = Image.frombytes("L", (WIDTH, HEIGHT), opaque_grey)
    yield "grey-key4.png", png(grey, 1, 4, GREY, extra=chunk(b"tRNS", b"\0\7")), expected
    profile = b"none\0\0" + zlib.compress(b"no profile")
    notes = chunk(b"gAMA", struct.pack(">I", 20000)) + chunk(b"tEXt", b"Comment\0none") + chunk(b"iCCP", profile)
    yield "rgb16.png", png(samples(23, WIDTH, HEIGHT, 3, 65535), 3, 16, RGB, extra=notes), None
    for bits in (8, 16):
        yield "rgba%d.png" % bits, png(samples(24 + bits, WIDTH, HEIGHT, 4, 2**bits - 1), 4, bits, RGBA), None
        rows = samples(25 + bits, WIDTH, HEIGHT, 2, 2**bits - 1)
        yield "grey-alpha%d.png" % bits, png(rows, 2, bits, GREY_ALPHA), None
    yield "interlaced-rgb8.png", png(samples(50, WIDTH, HEIGHT, 3, 255), 3, 8, RGB, True), None
    yield "interlaced-grey1.png", png(samples(51, WIDTH, HEIGHT, 1, 1), 1, 1, GREY, True), None
    yield "interlaced-rgba16.png", png(samples(52, WIDTH, HEIGHT, 4, 65535), 4, 16, RGBA, True), None
    yield "interlaced-1x1.png", png(samples(53, 1, 1, 3, 255), 3, 8, RGB, True), None


# PNM

def pnm(magic, rows, channels, maximum, comment=""):
    header = "P%d\n%s%d %d\n" % (magic, comment, len(rows[0]) // channels, len(rows))
    if magic not in (1, 4):
        header += "%d\n" % maximum
    if magic == 1:
        return (header + "\n".join("".join(map(str, row)) for row in rows) + "\n").encode()
    if magic < 4:
        return (header + "\n".join(" ".join(map(str, row)) for row in rows) + "\n").encode()
    bits = 1 if magic == 4 else 16 if maximum > 255 else 8
    return header.encode() + b"".join(packed(row, bits) for row in rows)


def pnm_files():
    """Names, files, and None or the image that Pillow should make of the file."""
    for magic in (1, 4):
        yield "p%d.pbm" % magic, pnm(magic, samples(magic, WIDTH, HEIGHT, 1, 1), 1, 1, "# a comment\n"), None
    for magic, maximum in ((2, 255), (5, 255), (2, 6), (5, 100), (5, 1023), (2, 65535)):
        rows = samples(60 + magic, WIDTH, HEIGHT, 1, maximum)
        yield "p%d-%d.pgm" % (magic, maximum), pnm(magic, rows, 1, maximum), upper_bits(rows, maximum)
    for magic, maximum in ((3, 255), (6, 255), (3, 15), (6, 6), (6, 65535)):
        rows = samples(70 + magic, WIDTH, HEIGHT, 3, maximum)
        yield "p%d-%d.ppm" % (magic, maximum), pnm(magic, rows, 3, maximum), upper_bits(rows, maximum)


def upper_bits(rows, maximum):
    """The image of the upper 8 of the 16 bits to which samples of more than 8 bits are scaled; None for 8 bits."""
    if maximum < 256:
        return None
    data = bytes(round(sample / maximum * 65535) >> 8 for row in rows for sample in row)
    channels = len(data) // (WIDTH * HEIGHT)
    return Image.frombytes("L" if channels == 1 else "RGB", (WIDTH, HEIGHT), data)


# JPEG

def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", optimize=True, **options)
    return out.getvalue()


def without_adobe(data):
    at = data.index(b"\xff\xee")
    return data[:at] + data[at + 2 + struct.unpack(">H", data[at + 2:at + 4])[0]:]


def jpeg_files():
    width, height = 21, 19
    image = Image.frombytes("RGB", (width, height), bytes(v for row in samples(80, width, height, 3, 255) for v in row))
    yield "rgb444.jpg", jpeg(image, quality=85, subsampling=0)
    yield "rgb422.jpg", jpeg(image, quality=85, subsampling=1)
    yield "rgb420.jpg", jpeg(image, quality=85, subsampling=2)
    yield "progressive.jpg", jpeg(image, quality=75, subsampling=2, progressive=True)
    yield "grey.jpg", jpeg(image.convert("L"), quality=85)
    yield "restarts.jpg", jpeg(image, quality=75, subsampling=0, restart_marker_blocks=3)
    yield "keep-rgb.jpg", jpeg(image, quality=75, keep_rgb=True)
    turned = Image.Exif()
    turned[0x0112] = 6  # orientation
    yield "turned.jpg", jpeg(image, quality=75, exif=turned)
    cmyk = Image.frombytes("CMYK", (WIDTH, HEIGHT), bytes(v for row in samples(81, WIDTH, HEIGHT, 4, 255) for v in row))
    inks = jpeg(cmyk, quality=95)
    yield "cmyk.jpg", inks
    yield "cmyk-without-adobe.jpg", without_adobe(inks)
    transform = inks.index(b"Adobe") + 11
    assert inks[transform] == 0
    yield "ycck.jpg", inks[:transform] + b"\2" + inks[transform + 1:]


# What Pillow makes of the files

def opaque(data):
    """The image over white, as RGB or grey."""
    image = Image.open(io.BytesIO(data))
    image.load()
    if image.mode.startswith("I"):
        return Image.frombytes("L", image.size, bytes(value >> 8 for value in image.get_flattened_data()))
    if image.mode not in ("LA", "RGBA") and "transparency" not in image.info:
        return image if image.mode == "L" else image.convert("L" if image.mode == "1" else "RGB")
    grey = image.mode in ("1", "L", "LA")
    image = image.convert("LA" if grey else "RGBA")
    white = Image.new("L" if grey else "RGB", image.size, "white")
    white.paste(image.convert(white.mode), mask=image.getchannel("A"))
    return white


def write_images(path):
    files = [*png_files(), *pnm_files(), *((name, data, None) for name, data in jpeg_files())]
    entries = []
    for name, data, expected in files:
        (FOLDER / name).write_bytes(data)
        image = expected or opaque(data)
        rgb = image.convert("RGB")
        assert image.mode == "L" or image.mode == "RGB"
        show = bytes.hex if name.endswith(".jpg") else fnv
        entries.append({"file": name, "width": image.width, "height": image.height, "rgb": show(rgb.tobytes()),
                        "grey": show(image.convert("L").tobytes())})
        if name in ("grey1.png", "palette-transparent.png", "interlaced-rgb8.png", "rgba16.png", "p3-15.ppm", "p4.pbm",
                    "p5-1023.pgm", "rgb420.jpg", "progressive.jpg", "cmyk.jpg", "grey.jpg"):
            (SEEDS / name).write_bytes(data)
    write_json(path, entries)


# Scaling and the operations

SOURCES = {"photo.png": ("RGB", 3, 40, 30), "grey.png": ("L", 1, 33, 21)}


def write_sources():
    for number, (name, (mode, channels, width, height)) in enumerate(SOURCES.items()):
        rows = [[30 + 3 * v // 4 for v in row] for row in samples(90 + number, width, height, channels, 255)]
        (FOLDER / name).write_bytes(png(rows, channels, 8, 0 if channels == 1 else 2))


def scaled(image, size):
    """Image.resize(size, BILINEAR) as by Pillow 12: first across, then down. Pillow 13 sometimes takes the other order,
    which changes some samples by 1."""
    across = image.resize((size[0], image.height), Image.Resampling.BILINEAR)
    return across.resize(size, Image.Resampling.BILINEAR)


def write_resize(path):
    entries = []
    for name in SOURCES:
        image = Image.open(FOLDER / name)
        for size in ((40, 30), (33, 21), (7, 5), (80, 61), (40, 5), (9, 30), (1, 1), (224, 224), (3, 97), (41, 29)):
            out = scaled(image, size)
            entries.append({"file": name, "box": [0, 0, *image.size], "size": size, "hash": fnv(out.tobytes())})
        for box in ((3, 2, 17, 19), (0, 0, 33, 1), (10, 20, 1, 1)):
            left, top, width, height = box
            cut = image.crop((left, top, left + width, top + height))
            out = scaled(cut, (16, 16))
            entries.append({"file": name, "box": box, "size": [16, 16], "hash": fnv(out.tobytes())})
    write_json(path, entries)


def fit(image, size, fraction):
    """torchvision's Resize(round(size / fraction)) and CenterCrop(size)."""
    shorter = math.floor(size / fraction + 0.5)
    width, height = image.size
    if width <= height:
        out = (shorter, int(shorter * height / width))
    else:
        out = (int(shorter * width / height), shorter)
    left, top = round((out[0] - size) / 2.0), round((out[1] - size) / 2.0)
    return scaled(image, out).crop((left, top, left + size, top + size))


def write_fit(path):
    entries = []
    for name in SOURCES:
        image = Image.open(FOLDER / name)
        for turned in (False, True):
            whole = image.transpose(Image.Transpose.ROTATE_90) if turned else image
            for size, fraction in ((16, 0.875), (17, 0.875), (32, 1.0), (25, 0.7), (224, 0.875)):
                entries.append({"file": name, "turned": turned, "size": size, "fraction": fraction,
                                "crop": fnv(fit(whole, size, fraction).tobytes()),
                                "stretch": fnv(scaled(whole, (size, size)).tobytes())})
    write_json(path, entries)


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def linspace(first, last, magnitude):
    """torch.linspace(first, last, 31)[magnitude]: 32-bit numbers, multiplied and added with one rounding."""
    first, last = float32(first), float32(last)
    step = float32(float32(last - first) / 30)
    if magnitude < 15:
        return float32(first + step * magnitude)
    return float32(last - step * (30 - magnitude))


def space(width, height, magnitude):
    """RandAugment._augmentation_space(31, (height, width)): amounts, and whether they have a sign."""
    signed = {"shear-x": 0.3, "shear-y": 0.3, "translate-x": 150.0 / 331.0 * width,
              "translate-y": 150.0 / 331.0 * height, "rotate": 30.0, "brightness": 0.9, "color": 0.9,
              "contrast": 0.9, "sharpness": 0.9}
    out = {"identity": (0.0, False)}
    out.update({name: (linspace(0.0, last, magnitude), True) for name, last in signed.items()})
    out["posterize"] = (float(8 - round(magnitude / ((31 - 1) / 4))), False)
    out["solarize"] = (linspace(255.0, 0.0, magnitude), False)
    out["auto-contrast"] = out["equalize"] = (0.0, False)
    return out


def affine(image, translate, shear, center):
    """torchvision.transforms.functional.affine() with angle 0 and scale 1."""
    sx, sy = math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(-sy) / math.cos(sy)
    b = -math.cos(-sy) * math.tan(sx) / math.cos(sy) - math.sin(0.0)
    c = math.sin(-sy) / math.cos(sy)
    d = -math.sin(-sy) * math.tan(sx) / math.cos(sy) + math.cos(0.0)
    matrix = [d, -b, 0.0, -c, a, 0.0]
    matrix[2] += matrix[0] * (-center[0] - translate[0]) + matrix[1] * (-center[1] - translate[1])
    matrix[5] += matrix[3] * (-center[0] - translate[0]) + matrix[4] * (-center[1] - translate[1])
    matrix[2] += center[0]
    matrix[5] += center[1]
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST, fillcolor=0)


def apply(image, name, amount):
    """torchvision.transforms.autoaugment._apply_op()."""
    middle = (image.width * 0.5, image.height * 0.5)
    angle = math.degrees(math.atan(amount))
    return {"identity": lambda: image,
            "shear-x": lambda: affine(image, (0, 0), (angle, 0.0), (0, 0)),
            "shear-y": lambda: affine(image, (0, 0), (0.0, angle), (0, 0)),
            "translate-x": lambda: affine(image, (int(amount), 0), (0.0, 0.0), middle),
            "translate-y": lambda: affine(image, (0, int(amount)), (0.0, 0.0), middle),
            "rotate": lambda: image.rotate(amount, Image.Resampling.NEAREST, False, None, fillcolor=0),
            "brightness": lambda: ImageEnhance.Brightness(image).enhance(1.0 + amount),
            "color": lambda: ImageEnhance.Color(image).enhance(1.0 + amount),
            "contrast": lambda: ImageEnhance.Contrast(image).enhance(1.0 + amount),
            "sharpness": lambda: ImageEnhance.Sharpness(image).enhance(1.0 + amount),
            "posterize": lambda: ImageOps.posterize(image, int(amount)),
            "solarize": lambda: ImageOps.solarize(image, amount),
            "auto-contrast": lambda: ImageOps.autocontrast(image),
            "equalize": lambda: ImageOps.equalize(image)}[name]()


def write_operations(path):
    entries = []
    for file in SOURCES:
        image = Image.open(FOLDER / file)
        for magnitude in (0, 4, 9, 14, 15, 20, 30):
            for name, (amount, signed) in space(*image.size, magnitude).items():
                entry = {"file": file, "operation": name, "magnitude": magnitude, "amount": amount, "signed": signed,
                         "hash": fnv(apply(image, name, amount).tobytes())}
                if signed:
                    entry["negative"] = fnv(apply(image, name, -amount).tobytes())
                entries.append(entry)
    write_json(path, entries)


def write_json(path, entries):
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    (FOLDER / path).write_text('{"versions": %s,\n"entries": [\n%s\n]}\n' % (json.dumps(VERSIONS), lines))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    SEEDS.mkdir(parents=True, exist_ok=True)
    write_images("images.json")
    write_sources()
    write_resize("resize.json")
    write_fit("fit.json")
    write_operations("operations.json")
