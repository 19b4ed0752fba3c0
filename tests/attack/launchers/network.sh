#!/bin/bash
# Four hosts as network namespaces on this machine, each with one rank, over a switch (switch.py)
# that delays and loses frames and whose cables can be pulled. mpirun reaches the hosts through a
# script in place of ssh. Needs root, iproute2, python3 and Open MPI. Each scenario prints one line;
# the exit code is the number of those that failed.
#
#   sudo tests/attack/launchers/network.sh build/tessera
set -u
program=$(realpath "${1:?usage: network.sh PATH-TO-tessera}")
here=$(dirname "$(realpath "$0")")
[ "$(id -u)" = 0 ] || { echo "network.sh: network namespaces need root" >&2; exit 2; }
folder=$(mktemp -d /tmp/tessera-network-XXXXXX)
tag=ts$$
hosts=(${tag}h0 ${tag}h1 ${tag}h2 ${tag}h3)
switch=
job=
end() {
  [ -n "$job" ] && kill -9 "$job" 2>/dev/null
  for host in "${hosts[@]}"; do
    ip netns pids "$host" 2>/dev/null | xargs -r kill -9 2>/dev/null
  done
  exec 7>&- # the switch ends when nobody commands it any more
  [ -n "$switch" ] && wait "$switch" 2>/dev/null
  for host in "${hosts[@]}"; do ip netns del "$host" 2>/dev/null; done
  [ -n "${KEEP:-}" ] && echo "kept $folder" || rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM

# --- the network ---
for host in "${hosts[@]}"; do ip netns add "$host" || exit 2; done
mkfifo "$folder/commands"
python3 "$here/switch.py" "${hosts[@]}" <"$folder/commands" >"$folder/switch.log" 2>&1 &
switch=$!
exec 7>"$folder/commands"
for _ in $(seq 100); do grep -q ready "$folder/switch.log" && break; sleep 0.1; done
grep -q ready "$folder/switch.log" || { cat "$folder/switch.log" >&2; exit 2; }
for i in 0 1 2 3; do
  ip -n "${hosts[i]}" link set lo up
  # mpirun waits for a lost host as long as TCP does: a quarter of an hour by default.
  ip netns exec "${hosts[i]}" sysctl -q -w net.ipv4.tcp_retries2=6
  ip -n "${hosts[i]}" addr add 10.99.0.$((i + 1))/24 dev cable
  ip -n "${hosts[i]}" link set cable up
  echo "10.99.0.$((i + 1)) slots=1" >>"$folder/hosts"
done
command_switch() { echo "$*" >&7; }
ip netns exec "${hosts[0]}" ping -c 1 -W 5 10.99.0.4 >/dev/null 2>&1 || sleep 1

# Each host has a name of its own and its own shared memory, as machines have.
cat >"$folder/on_host" <<AGENT
#!/bin/bash
# on_host ADDRESS COMMAND...: in place of ssh
host=${tag}h\$((\${1##*.} - 1))
shift
exec ip netns exec \$host unshare --uts --mount bash -c "hostname \$host; mount -t tmpfs none /dev/shm; \$*"
AGENT
chmod +x "$folder/on_host"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun=("$folder/on_host" 10.99.0.1 mpirun --hostfile "$folder/hosts" -n 4 --map-by node --bind-to none
  --mca plm_rsh_agent "$folder/on_host" --mca btl_tcp_if_include cable --mca oob_tcp_if_include cable)
train=("$program" train unet2d:base=2,depth=2,classes=2 --input 2x1x24x16
  --data synthetic:samples=12,classes=2 --space 4x1 --timeout 12 --checkpoint-interval 5 --steps 40)

# --- what is run ---
failed=0
say() { # NAME RESULT DETAIL
  printf '%-34s %-6s %s\n' "$1" "$2" "$3"
  [ "$2" = ok ] || failed=$((failed + 1))
}
run() { # NAME: under mpirun; the limit is far beyond what it needs
  timeout -k 5 240 "${mpirun[@]}" "${train[@]}" --run "$folder/$1" \
    --save-weights "$folder/$1.safetensors" >"$folder/$1.log" 2>&1
}
step_of() { tail -n 1 "$1/metrics.csv" 2>/dev/null | cut -d, -f1 | grep -E '^[0-9]+$' || echo 0; }
await_step() { # RUN STEP
  for _ in $(seq 1200); do [ "$(step_of "$1")" -ge "$2" ] && return 0; sleep 0.1; done
  return 1
}
same() { cmp -s "$folder/undisturbed.safetensors" "$1"; }
left() { for host in "${hosts[@]}"; do ip netns pids "$host"; done | wc -l; }

"${train[@]}" --run "$folder/undisturbed" --save-weights "$folder/undisturbed.safetensors" \
  >"$folder/undisturbed.log" 2>&1 || { tail "$folder/undisturbed.log"; exit 2; }

whole_run() { # NAME TITLE
  local begin=$SECONDS
  run "$1"
  local code=$?
  [ $code = 0 ] && same "$folder/$1.safetensors" &&
    say "$2" ok "exit code 0 after $((SECONDS - begin)) s, weights bit-equal to threads" ||
    say "$2" FAILED "exit code $code: $(tail -n 1 "$folder/$1.log")"
}
whole_run plain "four hosts"
command_switch delay 50
whole_run delay "50 ms of delay each way"
command_switch delay 5
command_switch loss 0.05
whole_run loss "5 ms of delay, 5 % of frames lost"
command_switch loss 0
command_switch delay 0

# --- a cable that is pulled in the midst of training: the rank on that host is named ---
disturbed() { # NAME TITLE RANK DISTURB... -- REPAIR...
  local name=$1 title=$2 rank=$3
  shift 3
  local disturb=()
  while [ "$1" != -- ]; do disturb+=("$1"); shift; done
  shift
  run "$name" &
  job=$!
  await_step "$folder/$name" 12
  local begin=$SECONDS
  "${disturb[@]}"
  wait "$job"
  local code=$? after=$((SECONDS - begin))
  job=
  "$@"
  sleep 3
  local word
  word=$(grep -oE "tessera: .*rank [0-9]+ (has not been heard from|failed).*" "$folder/$name.log" |
    head -n 1)
  for host in "${hosts[@]}"; do ip netns pids "$host" | xargs -r ps -o pid=,args= -p; done \
    >"$folder/$name.left" 2>/dev/null
  if [ $code != 0 ] && [ $code != 124 ] && [ $code != 137 ] && [ $after -le 60 ] &&
    grep -q "rank $rank" <<<"$word"; then
    say "$title" ok "ended after $after s, code $code; $word"
  else
    say "$title" FAILED "ended after $after s, code $code; ${word:-no rank is named}"
  fi
  [ "$(left)" = 0 ] && say "  no process left" ok "" ||
    say "  no process left" FAILED "$(left): $(head -c 200 "$folder/$name.left" | tr '\n' ';')"
  for host in "${hosts[@]}"; do ip netns pids "$host" | xargs -r kill -9; done 2>/dev/null
  run "$name"
  code=$?
  local at
  at=$(grep -oE "resumed at step [0-9]+" "$folder/$name.log" | head -n 1)
  [ $code = 0 ] && [ -n "$at" ] && same "$folder/$name.safetensors" &&
    say "  the same command again" ok "$at, weights bit-equal" ||
    say "  the same command again" FAILED "exit code $code ${at:-}"
}
disturbed cut "cable of rank 2 pulled" 2 command_switch cut 2 -- command_switch mend 2
disturbed down "link of rank 3 down" 3 ip -n "${hosts[3]}" link set cable down -- \
  ip -n "${hosts[3]}" link set cable up

echo "network.sh: $failed scenarios failed"
exit "$failed"
