#!/usr/bin/env bash
# What a machine with a GPU adds to the checks that run everywhere. Ends in under eight minutes
# where nothing has to be built, and in KVCHECK_DEVICE_SECONDS where that is set.
#
#   kernels/cuda/device_check.sh [BUILD] [OUT]
#
# BUILD: a build folder with kvcheck, kvcheck_device_bench and kvcheck_counted_steps (default
# build/release; what is missing there is built, with CUDA); OUT: where the table and the records go
# (default build/device_check). Exit code 0: everything that could run held; 1: a finding, or a tool
# that failed or did not end; 77: there is no GPU here, and nothing was checked.
set -uo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd) || exit 1
build=${1:-$root/build/release}
out=${2:-$root/build/device_check}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
here=$root/kernels/cuda
tools=$build/kernels/cuda
table=$out/device_check.md
status=0
deadline=0
code=0
took=0
# Where the CUDA toolkit has its tools.
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin

say() { printf '%s\n' "$*" | tee -a "$table"; }
row() { say "| $1 | $2 | $took s |"; }

# Runs a command, its output in OUT/FILE and all.log; sets code and took.
limited() {  # seconds at most, file, command ...
  local most=$1 file=$out/$2 begin=$SECONDS
  shift 2
  ((deadline - SECONDS < most)) && most=$((deadline - SECONDS))
  code=124
  if ((most > 0)); then
    timeout -k 5 "$most" "$@" >"$file" 2>"$out/errors.log"
    code=$?
  else
    : >"$file"
    : >"$out/errors.log"
  fi
  took=$((SECONDS - begin))
  # What did not heed the first signal was killed.
  ((code == 137 && took >= most)) && code=124
  { printf '+ %s\n' "$*"; cat "$file" "$out/errors.log"; } >>"$out/all.log"
  return 0
}

# One line of what a command printed, to say why it failed: a sanitizer's summary, a verdict, or the
# last line.
why() {  # file
  local pattern line
  for pattern in 'ERROR SUMMARY: [1-9]' '^(FAILED|UNDECIDED|SKIPPED)' '[^[:space:]]'; do
    line=$(cat "$out/$1" "$out/errors.log" | grep -E "$pattern" | tail -n 1)
    [[ -n $line ]] && break
  done
  printf '%s' "${line//|//}" | cut -c 1-200
}

judge() {  # words, file
  case $code in
    0) row "$1" held ;;
    77) row "$1" "skipped: $(why "$2")" ;;
    124)
      row "$1" 'not ended in its time'
      status=1
      ;;
    *)
      row "$1" "failed ($code): $(why "$2")"
      status=1
      ;;
  esac
}
stage() {  # words, seconds at most, file, command ...
  local words=$1 file=$3
  limited "${@:2}"
  judge "$words" "$file"
}

# Where a tool is not there nothing is found by it, and nothing has failed.
absent() {  # words, tool
  command -v "$2" >/dev/null && return 1
  took=0
  row "$1" "skipped: $2 is not installed"
}

# The SIMT runtime's counters and the profiler's, of the same launches.
counters() {
  local compare=$here/compare_counters.py words='counters of the SIMT runtime' metrics
  absent "$words" ncu && return
  absent "$words" python3 && return
  stage 'counted launches, SIMT runtime' 15 simt.jsonl "$tools/kvcheck_counted_steps" simt
  ((code == 0)) || return
  stage 'counted launches, GPU' 15 gpu.log "$tools/kvcheck_counted_steps" gpu
  ((code == 0)) || return
  limited 10 metrics.txt ncu --query-metrics
  limited 5 names.txt python3 "$compare" --metrics "$out/metrics.txt"
  if ((code != 0)); then
    judge "$words" names.txt
    return
  fi
  metrics=$(<"$out/names.txt")
  rm -f "$out/ncu.csv"
  limited 60 ncu.log ncu --csv --page details --print-units base --print-kernel-base function \
    --clock-control none --log-file "$out/ncu.csv" --metrics "$metrics" \
    "$tools/kvcheck_counted_steps" gpu
  if cat "$out/ncu.csv" "$out/ncu.log" "$out/errors.log" 2>/dev/null |
    grep -q ERR_NVGPUCTRPERM; then
    row "$words" 'skipped: no permission to read performance counters (ERR_NVGPUCTRPERM)'
    return
  fi
  if ((code != 0)); then
    # ncu says why in its own file.
    grep -E '^==(ERROR|WARNING)==' "$out/ncu.csv" >>"$out/ncu.log" 2>/dev/null
    judge "$words" ncu.log
    return
  fi
  limited 5 counters.md python3 "$compare" "$out/simt.jsonl" "$out/ncu.csv"
  if ((code == 1)); then
    row "$words" "differ: $(tail -n 1 "$out/counters.md")"
    status=1
  else
    judge "$words" counters.md
  fi
}

part() {  # heading, file
  [[ -s $out/$2 ]] || return 0
  say ''
  say "## $1"
  say ''
  tee -a "$table" <"$out/$2"
}

rm -f "$out"/{bench.md,torch.md,counters.md}
: >"$table"
: >"$out/all.log"
say "# Device check, $(date -u +%Y-%m-%d)"
say ''
if ! command -v nvidia-smi >/dev/null || ! timeout -k 5 10 nvidia-smi -L >/dev/null 2>&1; then
  say 'No GPU here: nothing was checked.'
  exit 77
fi
say "$(timeout -k 5 10 nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,memory.total \
  --format=csv,noheader 2>&1)"
say ''

if [[ ! -x $build/kvcheck || ! -x $tools/kvcheck_device_bench ||
  ! -x $tools/kvcheck_counted_steps ]]; then
  options=(-DKVCHECK_CUDA=ON)
  [[ -e $build/CMakeCache.txt ]] || options+=(--preset release -DKVCHECK_BUILD_TESTS=OFF)
  if ! cmake -S "$root" -B "$build" "${options[@]}" >>"$out/all.log" 2>&1 ||
    ! cmake --build "$build" --target kvcheck kvcheck_device_bench kvcheck_counted_steps \
      >>"$out/all.log" 2>&1; then
    say "The build failed; see $out/all.log"
    exit 1
  fi
fi

# The limits below come to 450 s; those that kill may take 5 s more.
deadline=$((SECONDS + ${KVCHECK_DEVICE_SECONDS:-455}))
say '| check | result | time |'
say '|---|---|---|'
# A finding has to be shrunk within its stage.
stage 'properties of cuda' 50 cuda.log "$build/kvcheck" run --target cuda --time 40 --seed 1 \
  --shrink-time 5 --out "$out/run-cuda" --quiet
stage 'properties of cuda-q8' 30 cuda-q8.log "$build/kvcheck" run --target cuda-q8 --time 20 \
  --seed 1 --shrink-time 5 --out "$out/run-cuda-q8" --quiet
# Each tool slows a run down by one or two orders of magnitude.
if ! absent compute-sanitizer compute-sanitizer; then
  for tool in memcheck racecheck initcheck synccheck; do
    # In one process: the tool watches the one that it starts.
    KVCHECK_PROGRAM='' stage "compute-sanitizer $tool" 35 "$tool.log" compute-sanitizer \
      --tool "$tool" --error-exitcode 9 "$build/kvcheck" run --target cuda --phases random \
      --cases 12 --seed 2 --case-timeout 30 --out "$out/sanitizer-$tool" --quiet
  done
fi
counters
stage 'times' 75 bench.md "$tools/kvcheck_device_bench"
if ! absent "PyTorch's times" python3; then
  limited 45 torch.md python3 "$here/torch_attention.py"
  # For comparison alone: where PyTorch is not there, nothing has failed.
  if ((code == 0)); then
    row "PyTorch's times" held
  else
    row "PyTorch's times" "skipped: $(why torch.md)"
  fi
fi
part 'Counters' counters.md
part 'Times' bench.md
part 'PyTorch' torch.md
exit $status
