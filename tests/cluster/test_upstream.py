"""What Kubeflow's users have in their files, and its web apps write, applies as it is.

Only the images are others: there is nobody to pull upstream's from.
"""

import re

import pytest
import yaml
from tests.cluster.kube import Kube
from tests.cluster.operator import BUSYBOX, claim, operator, wait_for_reason  # noqa: F401 - operator is a fixture

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

BY_HAND = f"""
apiVersion: kubeflow.org/v1
kind: Notebook
metadata:
  name: by-hand
spec:
  template:
    spec:
      containers:
        - name: by-hand
          image: {BUSYBOX}
          command: [httpd, -f, -p, "8888"]
"""

BY_THE_FORM = f"""
apiVersion: kubeflow.org/v1beta1
kind: Notebook
metadata:
  name: by-the-form
  labels:
    app: by-the-form
    access-ml-pipeline: "true"
  annotations:
    notebooks.kubeflow.org/server-type: group-two
    notebooks.kubeflow.org/creator: user@example.com
    notebooks.kubeflow.org/http-rewrite-uri: /
    notebooks.kubeflow.org/http-headers-request-set: '{{"X-RStudio-Root-Path":"/notebook/a/b/"}}'
spec:
  template:
    spec:
      serviceAccountName: default-editor
      containers:
        - name: by-the-form
          image: {BUSYBOX}
          imagePullPolicy: IfNotPresent
          command: [httpd, -f, -p, "8888"]
          env: []
          resources:
            requests:
              cpu: "0.1"
              memory: 0.1Gi
            limits:
              cpu: "0.2"
              memory: 0.2Gi
          volumeMounts:
            - mountPath: /dev/shm
              name: dshm
            - mountPath: /home/jovyan
              name: workspace
            - mountPath: /home/jovyan/data
              name: existing-source-volume-1a2b3c4d
      volumes:
        - emptyDir:
            medium: Memory
          name: dshm
        - name: workspace
          persistentVolumeClaim:
            claimName: workspace
        - name: existing-source-volume-1a2b3c4d
          emptyDir: {{}}
      tolerations:
        - effect: NoSchedule
          key: dedicated
          operator: Equal
          value: notebooks
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 1
              preference:
                matchExpressions:
                  - key: lifecycle
                    operator: In
                    values: [spot]
"""

SAVED = f"""
apiVersion: kubeflow.org/v1alpha1
kind: Notebook
metadata:
  name: saved
  labels:
    app: saved
  annotations:
    kubeflow-resource-stopped: "2026-01-01T00:00:00Z"
    notebooks.kubeflow.org/last-activity: "2026-01-01T00:00:00Z"
    notebooks.kubeflow.org/last_activity_check_timestamp: "2026-01-01T00:00:00Z"
spec:
  template:
    spec:
      containers:
        - name: saved
          image: {BUSYBOX}
          resources:
            limits:
              nvidia.com/gpu: 1
status:
  conditions: []
  containerState: {{}}
  readyReplicas: 0
"""

BOARD = """
apiVersion: tensorboard.kubeflow.org/v1alpha1
kind: Tensorboard
metadata:
  name: curves
  labels:
    access-ml-pipeline: "true"
spec:
  logspath: pvc://workspace/runs
status:
  conditions:
    - deploymentState: Progressing
      lastProbeTime: "2026-01-01T00:00:00Z"
    - deploymentState: Available
      lastProbeTime: "2026-01-01T00:00:05Z"
  readyReplicas: 1
"""

VIEWER = f"""
apiVersion: kubeflow.org/v1alpha1
kind: PVCViewer
metadata:
  name: workspace
spec:
  pvc: workspace
  podSpec:
    serviceAccountName: default-editor
    containers:
      - name: main
        image: {BUSYBOX}
        command: [httpd, -f, -p, "8080", -h, /srv]
        env:
          - name: FB_ADDRESS
            value: 0.0.0.0
          - name: FB_PORT
            value: "8080"
          - name: FB_DATABASE
            value: /tmp/filebrowser.db
          - name: FB_NOAUTH
            value: "true"
          - name: FB_BASEURL
            value: /pvcviewers/a/workspace/
        readinessProbe:
          tcpSocket:
            port: 8080
          initialDelaySeconds: 2
          periodSeconds: 10
        volumeMounts:
          - name: viewer-volume
            mountPath: /srv
    volumes:
      - name: viewer-volume
        persistentVolumeClaim:
          claimName: workspace
  networking:
    targetPort: 8080
    basePrefix: /pvcviewers
    rewrite: /
    timeout: 30s
  rwoScheduling: true
"""

EVERY = {
    "notebook/by-hand": BY_HAND,
    "notebook/by-the-form": BY_THE_FORM,
    "notebook/saved": SAVED,
    "tensorboard/curves": BOARD,
    "pvcviewer/workspace": VIEWER,
}


def apply(kube: Kube, *texts: str) -> None:
    """As it is; a field that nobody knows is an error."""
    kube("apply", "--validate=strict", "--filename", "-", given="---".join(texts))


def columns(kube: Kube, *words: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in kube("get", *words).splitlines()]


def test_it_applies_unchanged_and_runs(kube: Kube) -> None:
    kube("create", "serviceaccount", "default-editor")
    kube.apply(claim("workspace"))
    apply(kube, *EVERY.values())
    for what in EVERY.keys() - {"notebook/saved"}:
        kube.wait_for(what, "condition=Ready")
    wait_for_reason(kube, "notebook/saved", "Stopped")

    written = {what: yaml.safe_load(text) for what, text in EVERY.items()}
    for what, given in written.items():
        assert kube.get(what)["spec"] == given["spec"], "every field is kept, and none added"
    for version in ("v1", "v1beta1", "v1alpha1"):
        found = kube.get(f"notebooks.{version}.kubeflow.org", "by-the-form")
        assert found["spec"] == written["notebook/by-the-form"]["spec"]

    labels = kube.get("pod", "by-the-form-0")["metadata"]["labels"]
    assert (labels["app"], labels["access-ml-pipeline"]) == ("by-the-form", "true")
    [port] = kube.get("service", "pvcviewer-workspace")["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == ("http", 80, 8080)

    [head, *rows] = columns(kube, "notebooks")
    assert head == ["NAME", "READY", "REASON", "AGE"]
    assert [row[:-1] for row in rows] == [
        ["by-hand", "True", "Running"],
        ["by-the-form", "True", "Running"],
        ["saved", "False", "Stopped"],
    ]
    wide = columns(kube, "notebooks", "--output=wide")
    assert wide[0] == ["NAME", "READY", "REASON", "IMAGE", "LAST ACTIVITY", "AGE"]
    assert [row[3] for row in wide[1:]] == [BUSYBOX] * 3
    [head, row] = columns(kube, "tensorboards")
    assert head == ["NAME", "READY", "REASON", "LOGS", "AGE"]
    assert row[:-1] == ["curves", "True", "Running", "pvc://workspace/runs"]
    [head, row] = columns(kube, "pvcviewers")
    assert head == ["NAME", "READY", "REASON", "VOLUME", "URL", "AGE"]
    address = f"/pvcviewers/{kube.namespace}/workspace/"
    assert row[:-1] == ["workspace", "True", "Running", "workspace", address]


def test_an_unknown_field_is_refused(kube: Kube) -> None:
    with pytest.raises(AssertionError, match=r'unknown field "spec\.template\.spec\.contaners"'):
        apply(kube, BY_HAND.replace("containers:", "containers: []\n      contaners:"))
