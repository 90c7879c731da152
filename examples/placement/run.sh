#!/usr/bin/env bash
# Run the taxi application as a monolith at the edge and in the cloud, then split into steps that are placed apart,
# and draw what that costs: ./run.sh --help
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

namespace=placement edge='' cloud='' trainings='light heavy' scale=1 repeats=5
requests=100,500,1000,2000,3000,4000,5000,6000,8000,10000
results=$PWD/placement-results
while [ $# -gt 0 ]; do
    case $1 in
        --namespace) namespace=$2 ;; # is made, and removed at the end
        --edge) edge=$2 ;;           # a node; without it, the first of the cluster
        --cloud) cloud=$2 ;;         # a node; without it, the second
        --trainings) trainings=$2 ;; # "light", "heavy" or, as without it, "light heavy"
        --scale) scale=$2 ;;         # a part of the iterations: 100 is a hundredth
        --requests) requests=$2 ;;   # predictions in a request: 100,2000,10000
        --repeats) repeats=$2 ;;     # requests of each size; the median counts
        --results) results=$2 ;;     # the directory for measurements and charts
        *) sed -n 's/^ *\(--[a-z]*\)) [^;]*;; *# /\1  /p' "$0"; exit 2 ;;
    esac
    shift 2
done

k() { kubectl --namespace "$namespace" "$@"; }
say() { printf '%s\n' "$*" >&2; }

remove() {
    kubectl delete namespace "$namespace" --ignore-not-found --wait=false
    for node in $edge $cloud; do
        kubectl label node "$node" example.org/site- HOME-EDGE-
        set_cores "$node" null
    done
    for program in $programs; do kill "$program"; done
    rm -r "$work"
} >/dev/null

# Unequal nodes: the scheduler counts these cores, and the limits of the Pods make them as fast.
set_cores() {
    kubectl patch node "$1" --subresource=status --type=merge --patch \
        "{\"status\": {\"capacity\": {\"example.org/core\": $2}, \"allocatable\": {\"example.org/core\": $2}}}" >/dev/null
}

# kube-scheduler with Clew's extender, on this machine, for a cluster without deploy/scheduler.
start_scheduler() {
    local port
    port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
    clew scheduler --listen "127.0.0.1:$port" >"$work/extender.log" 2>&1 &
    programs+=" $!"
    sed -e "s/127.0.0.1:8888/127.0.0.1:$port/; s/leaderElect: true/leaderElect: false/" \
        "$here/../../deploy/scheduler/configuration.yaml" >"$work/scheduler.yaml"
    echo "clientConnection: {kubeconfig: ${KUBECONFIG:-$HOME/.kube/config}}" >>"$work/scheduler.yaml"
    kube-scheduler --config="$work/scheduler.yaml" --secure-port=0 >"$work/scheduler.log" 2>&1 &
    programs+=" $!"
}

# Note where a Pod ran, and why if the scheduler said so.
note_place() {
    local uid
    k get pod "$1" --output=jsonpath='{.metadata.name} {.spec.nodeName}{"\n"}' >>"$2/nodes.txt"
    uid=$(k get pod "$1" --output=jsonpath='{.metadata.uid}')
    k get events --field-selector "involvedObject.uid=$uid,reportingComponent=clew-scheduler" \
        --output=jsonpath='{range .items[*]}{.message}{"\n"}{end}' >>"$2/reasons.txt"
}

# Ask for predictions from HOME-EDGE. The network path to all Pods in the cloud is long.
measure_responses() {
    local far client
    far=$(k get pods --field-selector "spec.nodeName=$cloud" --output=jsonpath='{.items[*].status.podIP}')
    k create configmap path --from-literal=FAR="$far" --from-literal=RTT_MS=42 --from-literal=MBIT=20
    k create configmap request --from-literal=ADDRESS="$(k get pod "$1" --output=jsonpath='{.status.podIP}')" \
        --from-literal=REQUESTS="$requests" --from-literal=REPEATS="$repeats"
    client=$(k create --filename "$here/client.yaml" --output=name)
    k wait "$client" --for=jsonpath='{.status.phase}'=Succeeded --timeout=300s
    k logs "$client" >"$2/responses.jsonl"
    k delete configmap/path configmap/request
} >/dev/null

run_monoliths() {
    for site in edge cloud; do
        k apply --filename "$here/monolith-$site.yaml"
        k wait "pod/monolith-$site" --for=condition=Ready --timeout=900s
        k logs "monolith-$site" >"$1/$site/training.json"
    done
    for site in edge cloud; do
        measure_responses "monolith-$site" "$1/$site"
        note_place "monolith-$site" "$1/$site"
    done
    k delete pod/monolith-edge pod/monolith-cloud --wait=false
} >/dev/null

# What the clients measured tells the scheduler how far the nodes are.
label_nodes() {
    for site in edge cloud; do
        local ms
        ms=$(sed -n 's/.*"rtt_ms": \([0-9.]*\).*/\1/p' "$1/$site/responses.jsonl")
        kubectl label --overwrite node "${!site}" "HOME-EDGE=$ms"
    done
} >/dev/null

run_steps() {
    k apply --filename "$here/train.yaml"
    k wait pod/train --for=jsonpath='{.status.phase}'=Succeeded --timeout=900s
    k logs train >"$1/split/training.json"
    note_place train "$1/split"
    k create configmap model --from-file=model.json="$1/split/training.json"
    k apply --filename "$here/predict.yaml"
    k wait pod/predict --for=condition=Ready --timeout=180s
    measure_responses predict "$1/split"
    note_place predict "$1/split"
    k delete pod/train pod/predict configmap/model --wait=false
} >/dev/null

programs='' work=$(mktemp -d)
read -r first second _ <<<"$(kubectl get nodes --output=jsonpath='{.items[*].metadata.name}')"
edge=${edge:-$first} cloud=${cloud:-$second}
trap remove EXIT
kubectl wait "namespace/$namespace" --for=delete --timeout=60s >/dev/null  # of the run before
kubectl create namespace "$namespace" >/dev/null
for site in edge cloud; do kubectl label --overwrite node "${!site}" "example.org/site=$site" >/dev/null; done
set_cores "$edge" '"2"'
set_cores "$cloud" '"8"'
kubectl get deployment clew-scheduler --namespace clew-scheduler --output=name >/dev/null 2>&1 || start_scheduler
k wait serviceaccount/default --for=create --timeout=60s >/dev/null

for training in $trainings; do
    case $training in
        light) rate=0.01 iterations=10000 ;;
        heavy) rate=0.001 iterations=100000 ;;
    esac
    into=$results/$training
    rm -rf "$into"
    mkdir -p "$into"/{edge,cloud,split}
    k create configmap training --from-literal=LEARNING_RATE=$rate --from-literal=ITERATIONS=$((iterations / scale)) >/dev/null
    say "$training training, experiment 1: the application as one process, at the edge ($edge) and in the cloud ($cloud)"
    run_monoliths "$into"
    label_nodes "$into"
    say "$training training, experiment 2: training where the cores are, predictions near HOME-EDGE"
    run_steps "$into"
    k delete configmap/training >/dev/null
done
python3 "$here/charts.py" "$results"
