# Functions for the tests of programs under mpirun; source after expect.sh. Skips the test where mpirun does not work.
command -v mpirun >/dev/null || { echo "no mpirun (openmpi-bin)"; exit 77; }
# More ranks than processors, in a container, as root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export TMPDIR=/tmp # Open MPI's sockets need a short path
mpirun -n 2 "$HEED_BIN/train" --help >/dev/null 2>stderr || { echo "mpirun does not work here: $(head -n 3 stderr)"; exit 77; }
if mpirun -n 2 "$HEED_BIN/train" 2>&1 | grep -q 'built without MPI'; then
  echo "built without MPI"
  exit 77
fi

# ranks N COMMAND...: runs COMMAND on N ranks, or without a launcher where N is 0, and leaves out what mpirun says.
# After an error, mpirun ends the other ranks at once instead of after a second or two.
ranks() {
  local number=$1 code
  shift
  if [ "$number" -eq 0 ]; then "$@"; else timeout -k 5 60 mpirun --mca odls_base_sigkill_timeout 0 -n "$number" "$@" 2>messages; fi
  code=$?
  [ "$number" -eq 0 ] || grep -E '^(train|translate):|noticed' messages >&2
  return "$code"
}
