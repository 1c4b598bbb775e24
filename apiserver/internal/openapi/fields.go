package openapi

// requiredFields are required fields whose JSON encoding may omit them, as kube-apiserver
// v1.37.0 publishes them.
var requiredFields = fieldNames(
	"admissionregistration.v1.ValidatingAdmissionPolicyBinding.spec",
	"admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec.policyName",
	"admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec.validationActions", "apps.v1.DaemonSet.spec",
	"apps.v1.Deployment.spec", "apps.v1.ReplicaSet.spec", "apps.v1.StatefulSet.spec",
	"authentication.v1.TokenReviewSpec.token", "autoscaling.v1.HorizontalPodAutoscaler.spec",
	"autoscaling.v2.HorizontalPodAutoscaler.spec", "batch.v1.CronJob.spec", "core.v1.ContainerRestartRule.action",
	"core.v1.ContainerRestartRuleOnExitCodes.operator", "core.v1.ImageVolumeStatus.imageRef",
	"core.v1.PodCertificateProjection.keyType", "core.v1.PodCertificateProjection.signerName",
	"flowcontrol.v1.FlowSchema.spec", "flowcontrol.v1.FlowSchemaCondition.type",
	"flowcontrol.v1.LimitedPriorityLevelConfiguration.limitResponse", "flowcontrol.v1.PriorityLevelConfiguration.spec",
	"flowcontrol.v1.PriorityLevelConfigurationCondition.type", "networking.v1.IPAddress.spec",
	"networking.v1.IPAddressSpec.parentRef", "networking.v1.ParentReference.name", "networking.v1.ParentReference.resource",
	"resource.v1.CapacityRequestPolicyRange.min", "resource.v1.CounterSet.counters",
	"resource.v1.DeviceCounterConsumption.counters", "resource.v1.DeviceTaintRuleSpec.taint",
)

// optionalFields are fields that clients may omit although the server always sends
// them.
var optionalFields = fieldNames(
	"apps.v1.ControllerRevision.revision", "apps.v1.DaemonSetCondition.status", "apps.v1.DaemonSetCondition.type",
	"apps.v1.DeploymentCondition.status", "apps.v1.DeploymentCondition.type", "apps.v1.ReplicaSetCondition.status",
	"apps.v1.ReplicaSetCondition.type", "apps.v1.StatefulSetCondition.status", "apps.v1.StatefulSetCondition.type",
	"apps.v1.StatefulSetOrdinals.start", "apps.v1.StatefulSetSpec.serviceName",
	"apps.v1.StatefulSetStatus.availableReplicas", "authentication.v1.TokenRequest.spec",
	"authentication.v1.TokenRequestSpec.audiences", "authentication.v1.TokenRequestSpec.boundObjectRef",
	"authentication.v1.TokenRequestSpec.expirationSeconds", "authentication.v1.TokenRequestStatus.expirationTimestamp",
	"authentication.v1.TokenRequestStatus.token", "autoscaling.v2.HorizontalPodAutoscalerStatus.currentMetrics",
	"batch.v1.PodFailurePolicyOnPodConditionsPattern.status", "core.v1.AzureFilePersistentVolumeSource.secretNamespace",
	"core.v1.ContainerImage.names", "core.v1.Event.reportingComponent", "core.v1.Event.reportingInstance",
	"core.v1.GRPCAction.service", "core.v1.NodeRuntimeHandler.name", "core.v1.ProjectedVolumeSource.sources",
	"core.v1.TypedLocalObjectReference.apiGroup", "core.v1.TypedObjectReference.apiGroup",
	"discovery.v1.EndpointSlice.endpoints", "discovery.v1.EndpointSlice.ports", "events.v1.Event.metadata",
	"flowcontrol.v1.FlowSchemaSpec.matchingPrecedence",
	"flowcontrol.v1.LimitedPriorityLevelConfiguration.nominalConcurrencyShares",
	"flowcontrol.v1.QueuingConfiguration.handSize", "flowcontrol.v1.QueuingConfiguration.queueLengthLimit",
	"flowcontrol.v1.QueuingConfiguration.queues", "flowcontrol.v1.ResourcePolicyRule.namespaces",
	"networking.v1.IngressClassParametersReference.scope", "networking.v1.NetworkPolicySpec.podSelector",
	"policy.v1.PodDisruptionBudgetStatus.currentHealthy", "policy.v1.PodDisruptionBudgetStatus.desiredHealthy",
	"policy.v1.PodDisruptionBudgetStatus.disruptionsAllowed", "policy.v1.PodDisruptionBudgetStatus.expectedPods",
	"rbac.v1.ClusterRole.rules", "rbac.v1.Role.rules", "rbac.v1.RoleRef.apiGroup",
	"resource.v1.AllocatedDeviceStatus.conditions", "resource.v1.CapacityRequestPolicy.default",
	"resource.v1.DeviceClaim.requests", "resource.v1.DeviceClass.spec", "resource.v1.ResourceClaim.spec",
	"resource.v1.ResourceClaimSpec.devices", "resource.v1.ResourceClaimTemplate.spec",
	"resource.v1.ResourceClaimTemplateSpec.spec", "scheduling.v1.PriorityClass.value",
	"storage.v1.CSINodeDriver.topologyKeys", "apiextensions.v1.CustomResourceDefinitionStatus.acceptedNames",
	"apiextensions.v1.CustomResourceDefinitionStatus.conditions",
	"apiextensions.v1.CustomResourceDefinitionStatus.storedVersions",
)

// fieldNames is a set of fields, named as in "core.v1.PodSpec.dnsPolicy".
func fieldNames(names ...string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, name := range names {
		out[name] = true
	}
	return out
}

// publishedDefaults are the defaults in the descriptions of types.
var publishedDefaults = map[string]any{
	"autoscaling.v1.ScaleSpec.replicas":                              0,
	"certificates.v1.PodCertificateRequestSpec.maxExpirationSeconds": 86400,
	"core.v1.AzureDiskVolumeSource.cachingMode":                      "ReadWrite",
	"core.v1.AzureDiskVolumeSource.fsType":                           "ext4",
	"core.v1.AzureDiskVolumeSource.kind":                             "Shared",
	"core.v1.AzureDiskVolumeSource.readOnly":                         false,
	"core.v1.ConfigMapEnvSource.name":                                "",
	"core.v1.ConfigMapKeySelector.name":                              "",
	"core.v1.ConfigMapProjection.name":                               "",
	"core.v1.ConfigMapVolumeSource.name":                             "",
	"core.v1.ContainerPort.protocol":                                 "TCP",
	"core.v1.FileKeySelector.optional":                               false,
	"core.v1.ISCSIPersistentVolumeSource.iscsiInterface":             "default",
	"core.v1.ISCSIVolumeSource.iscsiInterface":                       "default",
	"core.v1.LocalObjectReference.name":                              "",
	"core.v1.RBDPersistentVolumeSource.keyring":                      "/etc/ceph/keyring",
	"core.v1.RBDPersistentVolumeSource.pool":                         "rbd",
	"core.v1.RBDPersistentVolumeSource.user":                         "admin",
	"core.v1.RBDVolumeSource.keyring":                                "/etc/ceph/keyring",
	"core.v1.RBDVolumeSource.pool":                                   "rbd",
	"core.v1.RBDVolumeSource.user":                                   "admin",
	"core.v1.ReplicationControllerSpec.minReadySeconds":              0,
	"core.v1.ReplicationControllerSpec.replicas":                     1,
	"core.v1.ScaleIOPersistentVolumeSource.fsType":                   "xfs",
	"core.v1.ScaleIOPersistentVolumeSource.storageMode":              "ThinProvisioned",
	"core.v1.ScaleIOVolumeSource.fsType":                             "xfs",
	"core.v1.ScaleIOVolumeSource.storageMode":                        "ThinProvisioned",
	"core.v1.SecretEnvSource.name":                                   "",
	"core.v1.SecretKeySelector.name":                                 "",
	"core.v1.SecretProjection.name":                                  "",
	"core.v1.ServicePort.protocol":                                   "TCP",
	"resource.v1.DeviceToleration.operator":                          "Equal",
}
