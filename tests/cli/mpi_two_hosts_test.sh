#!/usr/bin/env bash
# Checks training on two hosts: two network namespaces of this machine, joined by a cable (veth), which is then cut.
source "${HEED_SOURCE:?}/tests/cli/expect.sh" || exit 1
train=$HEED_BIN/train
data=$HEED_SOURCE/data
for tool in mpirun ip h5diff; do
  command -v "$tool" >/dev/null || { echo "no $tool (openmpi-bin, iproute2, hdf5-tools)"; exit 77; }
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
one=heed-$$-1 two=heed-$$-2
# shellcheck disable=SC2154
trap 'ip netns del "$one"; ip netns del "$two"; rm -rf "${work:?}"' EXIT
ip netns add "$one" 2>stderr && ip netns add "$two" 2>stderr &&
  ip link add port netns "$one" type veth peer name port netns "$two" 2>stderr &&
  ip netns exec "$one" true 2>stderr && ip netns exec "$two" true 2>stderr ||
  { echo "no network namespaces here: $(cat stderr)"; exit 77; }
connect() {
  local host number=0
  for host in "$one" "$two"; do
    number=$((number + 1))
    ip -n "$host" addr replace 10.7.0.$number/24 dev port
    ip -n "$host" link set lo up
    ip -n "$host" link set port up
  done
}
# mpirun starts the process of the other host through this program, in the place of ssh.
cat >agent <<END
#!/bin/sh
shift
exec ip netns exec $two sh -c "\$*"
END
chmod +x agent
on_two_hosts() {
  local network=10.7.0.0/24
  ip netns exec "$one" timeout 100 mpirun -n 2 --host 10.7.0.1,10.7.0.2 --map-by node --bind-to none --mca plm_rsh_agent "$work/agent" \
    --mca btl tcp,self --mca btl_tcp_if_include $network --mca oob_tcp_if_include $network --mca oob_tcp_keepalive_time 2 \
    --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 3 "$@" >messages 2>&1
}
same() {
  h5diff "$1" "$2" /parameters /parameters >difference || fail "$1 and $2: $(head -n 3 difference)"
}

head -n 500 "$data/train.en" >train.en
head -n 500 "$data/train.fr" >train.fr
cat train.en train.fr | "$HEED_BIN/build-vocab" -q --type bpe -s 400 >vocab || fail "build-vocab failed"
options=(-q -t train.en train.fr -v vocab --task transformer-tiny --enc-depth 1 --dec-depth 1 --dim-emb 32 --transformer-dim-ffn 64
  --mini-batch-words 1200 --dropout 0.2 --lr-warmup 0 --save-freq 10u)
connect
"$train" "${options[@]}" --after 30u -m one.h5 || fail "one process: exit $?"
on_two_hosts "$train" "${options[@]}" -j 1 --after 30u -m two.h5 || fail "two hosts: exit $?, $(cat messages)"
same one.h5 two.h5

# The cut cable ends the training; the state that was saved last goes on as if nothing had happened.
on_two_hosts "$train" "${options[@]}" -j 1 --after 1000000u -m cut.h5 &
launcher=$!
for _ in $(seq 1000); do  # beside other tests, mpirun can take ten seconds to begin
  [ -e cut.h5 ] && break
  sleep 0.05
done
[ -e cut.h5 ] || fail "a cut cable: no training has begun"
ip -n "$one" link set port down
begin=$SECONDS
wait "$launcher" && fail "a cut cable: no error"
[ $((SECONDS - begin)) -le 30 ] || fail "a cut cable is noticed after $((SECONDS - begin)) seconds"
grep -q '10.7.0.2' messages || fail "a cut cable: $(cat messages)"
for _ in $(seq 100); do
  pgrep -f "$train.*-m cut.h5" >/dev/null || break
  sleep 0.1
done
pgrep -f "$train.*-m cut.h5" >/dev/null && fail "a process is left"
updates=$("$train" "${options[@]:1}" --after 1000000u -m cut.h5 --dry-run 2>/dev/null | sed -n 's/.*goes on after update //p' | tr -d ,)
until=$((updates + 10))
connect
on_two_hosts "$train" "${options[@]}" -j 1 --after "${until}u" -m cut.h5 || fail "after the cut: exit $?, $(cat messages)"
"$train" "${options[@]}" --after "${until}u" -m whole.h5 || fail "one process: exit $?"
same cut.h5 whole.h5
finish
