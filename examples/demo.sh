#!/bin/sh
# The main job on three ordinary scripts: a compile error, wrong numbers, a segfault. Each ends in a minimal repro.
set -u
here=$(dirname "$0")
out=${1:-cutaway_debug/demo_$(date +%Y_%m_%d_%H_%M_%S)}
failed=0
for name in compile_error wrong_result segfault; do
  printf '\n$ cutaway triage examples/%s.py\n' "$name"
  cutaway triage -o "$out/$name" "$here/$name.py"
  status=$?
  # 1 is the answer looked for: a failure of the compiler, found and reduced.
  if [ "$status" -ne 1 ] || [ ! -f "$out/$name/minimal/repro.py" ]; then
    echo "cutaway: $name: no minimal repro (exit status $status)" >&2
    failed=1
  fi
done
printf '\n'
for name in compile_error wrong_result segfault; do
  [ -f "$out/$name/minimal/repro.py" ] && echo "$out/$name/minimal/repro.py"
done
exit "$failed"
