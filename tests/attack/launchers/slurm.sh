#!/bin/bash
# A real SLURM on this machine, made for this test and gone after it: two nodes as two slurmd, all
# on loopback, with a folder, ports and keys of their own. Needs root; installs Debian's slurm-wlm
# and munge where they are missing. Each scenario prints one line; the exit code is the number of
# those that failed.
#
#   sudo tests/attack/launchers/slurm.sh build/tessera
set -u
program=$(realpath "${1:?usage: slurm.sh PATH-TO-tessera}")
[ "$(id -u)" = 0 ] || { echo "slurm.sh: SLURM's daemons need root" >&2; exit 2; }
export DEBIAN_FRONTEND=noninteractive
command -v slurmctld slurmd munged >/dev/null ||
  apt-get install -y --no-install-recommends slurm-wlm munge >/dev/null || exit 2

folder=$(mktemp -d /tmp/tessera-slurm-XXXXXX)
pids=()
end() {
  scancel --quiet --user=root 2>/dev/null
  sleep 1
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
  sleep 1
  for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done
  [ -n "${KEEP:-}" ] && echo "kept $folder" || rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM

start() { # NAME COMMAND...: a daemon in the foreground of a background job
  local name=$1
  shift
  "$@" >"$folder/$name.log" 2>&1 &
  pids+=($!)
}

# --- the cluster ---
chmod 755 "$folder"
mkdir -m 755 "$folder/munge" "$folder/state"
head -c 1024 /dev/urandom >"$folder/munge/key"
chmod 400 "$folder/munge/key"
socket=$folder/munge/socket
start munged munged --foreground --force --key-file="$folder/munge/key" --socket="$socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed"

export SLURM_CONF=$folder/slurm.conf
cpus=$(nproc)
cat >"$SLURM_CONF" <<CONF
ClusterName=tessera
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$socket
CredType=cred/munge
SlurmctldPort=26817
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmdSpoolDir=$folder/spool-%n
SlurmdLogFile=$folder/slurmd-%n.log
TmpFS=$folder/tmp-%n
StateSaveLocation=$folder/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
ReturnToService=2
SlurmdTimeout=300
JobRequeue=1
MinJobAge=300
KillWait=5
NodeName=n1 NodeHostname=n1 NodeAddr=127.0.0.1 Port=26818 CPUs=$cpus State=UNKNOWN
NodeName=n2 NodeHostname=n2 NodeAddr=127.0.0.1 Port=26819 CPUs=$cpus State=UNKNOWN
PartitionName=all Nodes=n1,n2 Default=YES OverSubscribe=FORCE:8 MaxTime=INFINITE State=UP
CONF
mkdir "$folder"/{spool,tmp}-n{1,2}
echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf"
for _ in $(seq 50); do [ -S "$socket" ] && break; sleep 0.1; done
start slurmctld slurmctld -D -i
# Each node has a name and a shared memory of its own, as two machines would: Open MPI takes
# processes of one host name for neighbours, and names their memory by it.
for node in n1 n2; do
  start $node unshare --uts --mount bash -c "hostname $node && mount -t tmpfs none /dev/shm &&
    exec slurmd -D -N $node"
done
for _ in $(seq 100); do
  [ "$(sinfo -h -o %D -t idle 2>/dev/null)" = 2 ] && break
  sleep 0.3
done
[ "$(sinfo -h -o %D -t idle 2>/dev/null)" = 2 ] || {
  echo "slurm.sh: the nodes do not come up" >&2
  sinfo >&2
  tail -n 5 "$folder"/*.log >&2
  exit 2
}
echo "SLURM $(slurmd -V | cut -d' ' -f2), nodes $(sinfo -h -o '%N'), MPI: $(srun --mpi=list 2>&1 |
  grep -oE 'pmix[_v0-9]*|pmi2' | sort -u | tr '\n' ' ')"

# --- what is run ---
job=(train unet2d:base=2,depth=2,classes=2 --input 2x1x24x16 --data synthetic:samples=12,classes=2
  --space 4x1 --timeout 20 --checkpoint-interval 10)
srun=(srun -n 4 -N 2 --overcommit --overlap --kill-on-bad-exit=1)
failed=0
say() { # NAME RESULT DETAIL
  printf '%-28s %-6s %s\n' "$1" "$2" "$3"
  [ "$2" = ok ] || failed=$((failed + 1))
}
step_of() { tail -n 1 "$1/metrics.csv" 2>/dev/null | cut -d, -f1 | grep -E '^[0-9]+$' || echo 0; }
await_step() { # RUN STEP
  for _ in $(seq 600); do [ "$(step_of "$1")" -ge "$2" ] && return 0; sleep 0.1; done
  return 1
}
await_state() { # JOB PATTERN
  for _ in $(seq 600); do
    squeue -h -j "$1" -o %T 2>/dev/null | grep -qE "$2" && return 0
    sleep 0.1
  done
  return 1
}
await_end() { # JOB
  for _ in $(seq 900); do
    squeue -h -t pending,running,completing,requeued -j "$1" -o %T 2>/dev/null | grep -q . || return 0
    sleep 0.1
  done
  return 1
}
same() { cmp -s "$folder/undisturbed.safetensors" "$1"; }
left() { pgrep -c -f "^$program train .*$folder" || true; }

"$program" "${job[@]}" --steps 300 --run "$folder/undisturbed" \
  --save-weights "$folder/undisturbed.safetensors" >"$folder/undisturbed.log" 2>&1 ||
  { tail "$folder/undisturbed.log"; exit 2; }

# --- a whole run, by each way that SLURM has to start MPI ---
mpi=
for way in pmix pmi2; do
  timeout 120 "${srun[@]}" --mpi=$way "$program" "${job[@]}" --steps 300 --run "$folder/$way" \
    --save-weights "$folder/$way.safetensors" >"$folder/$way.log" 2>&1
  code=$?
  if [ $code = 0 ] && same "$folder/$way.safetensors"; then
    say "srun --mpi=$way" ok "exit code 0, weights bit-equal to threads"
    mpi=${mpi:-$way}
  elif [ $code != 0 ] && grep -q "not built with SLURM's PMI support" "$folder/$way.log"; then
    say "srun --mpi=$way" ok "not spoken by this Open MPI, which says so: exit code $code"
  else
    say "srun --mpi=$way" FAILED "exit code $code: $(tail -n 1 "$folder/$way.log")"
  fi
done
[ -n "$mpi" ] || exit "$failed"

# --- another number of tasks than the placement has ---
timeout 60 srun -n 3 -N 1 --overcommit --overlap --mpi=$mpi "$program" "${job[@]}" --steps 300 \
  --run "$folder/three" >"$folder/three.log" 2>&1
code=$?
grep -q "the placement has 4 ranks, the launcher started 3" "$folder/three.log" && [ $code = 2 ] &&
  say "3 tasks for 4 ranks" ok "exit code 2" ||
  say "3 tasks for 4 ranks" FAILED "exit code $code"

# --- a killed task ---
run=$folder/killed
timeout 120 "${srun[@]}" --mpi=$mpi "$program" "${job[@]}" --steps 300 --run "$run" \
  >"$folder/killed.log" 2>&1 &
waiting=$!
await_step "$run" 50
victim=$(pgrep -f "^$program train .*--run $run( |$)" | while read -r pid; do
  tr '\0' '\n' <"/proc/$pid/environ" | grep -qx SLURM_PROCID=2 && echo "$pid"
done | head -n 1)
begin=$SECONDS
kill -9 "$victim"
wait $waiting
code=$?
after=$((SECONDS - begin))
sleep 1
if [ $code != 0 ] && [ $code != 124 ] && [ $after -le 30 ] && [ "$(left)" = 0 ]; then
  say "task 2 killed" ok "the job ended after $after s with srun's code $code, no process left"
else
  say "task 2 killed" FAILED "code $code after $after s, $(left) processes left"
fi
timeout 120 "${srun[@]}" --mpi=$mpi "$program" "${job[@]}" --steps 300 --run "$run" \
  --save-weights "$folder/killed.safetensors" >"$folder/killed-again.log" 2>&1
code=$?
at=$(grep -oE "resumed at step [0-9]+" "$folder/killed-again.log")
if [ $code = 0 ] && [ -n "$at" ] && same "$folder/killed.safetensors"; then
  say "  the same command again" ok "${at:-started anew}, weights bit-equal"
else
  say "  the same command again" FAILED "code $code ${at:-}"
fi

# --- jobs of scripts: cancelled, requeued ---
script() { # NAME STEPS
  cat >"$folder/$1.sh" <<JOB
#!/bin/bash
#SBATCH --job-name=$1 --ntasks=4 --nodes=2 --overcommit --requeue --open-mode=append
#SBATCH --output=$folder/$1.out
${srun[*]} --mpi=$mpi $program ${job[*]} --steps $2 --run $folder/$1 \
  --save-weights $folder/$1.safetensors
echo "step ended with \$?"
JOB
  sbatch --parsable "$folder/$1.sh"
}

id=$(script cancelled 300)
await_step "$folder/cancelled" 50
begin=$SECONDS
scancel "$id"
await_end "$id"
after=$((SECONDS - begin))
sleep 2
if [ $after -le 30 ] && [ "$(left)" = 0 ]; then
  say "scancel" ok "gone after $after s at step $(step_of "$folder/cancelled"), no process left"
else
  say "scancel" FAILED "$(left) processes left after $after s"
fi
id=$(script cancelled 300)
await_end "$id"
at=$(grep -oE "resumed at step [0-9]+" "$folder/cancelled.out" | tail -n 1)
same "$folder/cancelled.safetensors" &&
  say "  submitted again" ok "${at:-started anew}, weights bit-equal" ||
  say "  submitted again" FAILED "$(tail -n 1 "$folder/cancelled.out")"

id=$(script requeued 300)
await_step "$folder/requeued" 50
scontrol requeue "$id"
await_state "$id" PENDING
scontrol update JobId="$id" StartTime=now 2>/dev/null
scontrol release "$id" 2>/dev/null
for _ in $(seq 1800); do # SLURM itself waits a while before it starts a job again
  [ -e "$folder/requeued.safetensors" ] && break
  sleep 0.1
done
await_end "$id"
at=$(grep -oE "resumed at step [0-9]+" "$folder/requeued.out" | tail -n 1)
if same "$folder/requeued.safetensors" && [ -n "$at" ]; then
  say "scontrol requeue" ok "$at, weights bit-equal"
else
  say "scontrol requeue" FAILED "${at:-never resumed}: $(tail -n 1 "$folder/requeued.out")"
fi

# --- inside an allocation the program starts its own ranks, on this node ---
timeout 120 srun -n 1 "$program" "${job[@]}" --steps 300 --launch mpi --run "$folder/inside" \
  --save-weights "$folder/inside.safetensors" >"$folder/inside.log" 2>&1
code=$?
[ $code = 0 ] && same "$folder/inside.safetensors" &&
  say "--launch mpi in a job" ok "exit code 0, weights bit-equal" ||
  say "--launch mpi in a job" FAILED "exit code $code: $(tail -n 1 "$folder/inside.log")"

echo "slurm.sh: $failed scenarios failed"
exit "$failed"
