#!/bin/sh
# Run the five Pods, one after the other, in the namespace of the current context.
set -eu
cd "$(dirname "$0")"
for step in ingest prepare-north prepare-south train evaluate; do
    kubectl delete pod "$step" --ignore-not-found --wait
    kubectl apply --filename "$step.yaml"
    kubectl wait "pod/$step" --for=jsonpath='{.status.phase}'=Succeeded --timeout=180s
done
