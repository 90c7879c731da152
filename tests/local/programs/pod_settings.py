"""A pipeline whose task has every setting of a Pod that kfp-kubernetes can write."""

from kfp import dsl, kubernetes


@dsl.container_component
def work():  # type: ignore[no-untyped-def]
    return dsl.ContainerSpec(image="docker.io/library/busybox:1.35", command=["true"])


@dsl.pipeline(name="pod-settings")
def pod_settings(
    secret: str = "login",
    registry: str = "registry",
    selector: dict = {"disk": "ssd"},  # noqa: B006
    tolerations: list = [{"key": "spot", "operator": "Exists", "effect": "NoExecute"}],  # noqa: B006
    affinity: dict = {  # noqa: B006
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
        }
    },
) -> None:
    task = work()
    task.set_cpu_request("100m").set_cpu_limit("1").set_memory_limit("64Mi")
    task.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(2)
    task.set_env_variable("PLAIN", "a $(b) $$c")
    kubernetes.use_secret_as_env(task, secret, {"password": "PASSWORD"})
    kubernetes.use_secret_as_env(task, "maybe", {"key": "MAYBE"}, optional=True)
    kubernetes.use_config_map_as_env(task, "modes", {"mode": "MODE"})
    kubernetes.use_secret_as_volume(task, secret, "/secret")
    kubernetes.use_config_map_as_volume(task, "modes", "/modes", optional=True)
    kubernetes.mount_pvc(task, "data", "/data", sub_path="in")
    kubernetes.mount_pvc(task, "data", "/more")
    kubernetes.empty_dir_mount(task, "scratch", "/scratch", medium="Memory", size_limit="1Gi")
    kubernetes.add_ephemeral_volume(
        task,
        "own",
        "/own",
        access_modes=["ReadWriteOnce"],
        size="1Gi",
        storage_class_name="standard",
        labels={"team": "blue"},
        annotations={"note": "x"},
    )
    kubernetes.add_node_selector_json(task, selector)
    kubernetes.add_toleration(
        task, key="gpu", operator="Equal", value="a", effect="NoExecute", toleration_seconds=3600
    )
    kubernetes.add_toleration_json(task, tolerations)
    name = [{"key": "metadata.name", "operator": "NotIn", "values": ["node9"]}]
    kubernetes.add_node_affinity(task, match_fields=name, weight=5)
    kubernetes.add_node_affinity_json(task, affinity)
    kubernetes.add_pod_label(task, "team", "blue")
    kubernetes.add_pod_annotation(task, "why", "because")
    kubernetes.set_image_pull_policy(task, "IfNotPresent")
    kubernetes.set_image_pull_secrets(task, [registry])
    kubernetes.set_security_context(task, run_as_user=1000, run_as_group=100, run_as_non_root=True)
    kubernetes.set_timeout(task, 3600)
    kubernetes.use_field_path_as_env(task, "TEAM", "metadata.labels['team']")
    kubernetes.use_field_path_as_env(task, "ADDRESS", "status.podIP")
