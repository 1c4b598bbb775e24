package openapi

// enumsByField are the values of fields with a closed set of them, as
// kube-apiserver v1.37.0 publishes them. The Go types don't have them.
var enumsByField = byField([]enumeration{
	{
		[]string{
			"Equivalent", "Exact",
		},
		[]string{
			"admissionregistration.v1.MatchResources.matchPolicy", "admissionregistration.v1.MutatingWebhook.matchPolicy",
			"admissionregistration.v1.ValidatingWebhook.matchPolicy",
		},
	},
	{
		[]string{
			"Fail", "Ignore",
		},
		[]string{
			"admissionregistration.v1.MutatingAdmissionPolicySpec.failurePolicy", "admissionregistration.v1.MutatingWebhook.failurePolicy",
			"admissionregistration.v1.ValidatingAdmissionPolicySpec.failurePolicy",
			"admissionregistration.v1.ValidatingWebhook.failurePolicy",
		},
	},
	{
		[]string{
			"IfNeeded", "Never",
		},
		[]string{
			"admissionregistration.v1.MutatingAdmissionPolicySpec.reinvocationPolicy",
			"admissionregistration.v1.MutatingWebhook.reinvocationPolicy",
		},
	},
	{
		[]string{
			"None", "NoneOnDryRun", "Some", "Unknown",
		},
		[]string{
			"admissionregistration.v1.MutatingWebhook.sideEffects", "admissionregistration.v1.ValidatingWebhook.sideEffects",
		},
	},
	{[]string{"ApplyConfiguration", "JSONPatch"}, []string{"admissionregistration.v1.Mutation.patchType"}},
	{
		[]string{
			"*", "CONNECT", "CREATE", "DELETE", "UPDATE",
		},
		[]string{
			"admissionregistration.v1.NamedRuleWithOperations.operations", "admissionregistration.v1.RuleWithOperations.operations",
		},
	},
	{[]string{"*", "Cluster", "Namespaced"}, []string{"admissionregistration.v1.NamedRuleWithOperations.scope",
		"admissionregistration.v1.RuleWithOperations.scope"}},
	{[]string{"Audit", "Deny", "Warn"}, []string{"admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec.validationActions"}},
	{[]string{"OnDelete", "RollingUpdate"}, []string{"apps.v1.DaemonSetUpdateStrategy.type"}},
	{[]string{"Recreate", "RollingUpdate"}, []string{"apps.v1.DeploymentStrategy.type"}},
	{[]string{"OrderedReady", "Parallel"}, []string{"apps.v1.StatefulSetSpec.podManagementPolicy"}},
	{[]string{"OnDelete", "Recreate", "RollingUpdate"}, []string{"apps.v1.StatefulSetUpdateStrategy.type"}},
	{[]string{"Allow", "Forbid", "Replace"}, []string{"batch.v1.CronJobSpec.concurrencyPolicy"}},
	{[]string{"Indexed", "NonIndexed"}, []string{"batch.v1.JobSpec.completionMode"}},
	{[]string{"Failed", "TerminatingOrFailed"}, []string{"batch.v1.JobSpec.podReplacementPolicy"}},
	{[]string{"In", "NotIn"}, []string{"batch.v1.PodFailurePolicyOnExitCodesRequirement.operator"}},
	{[]string{"Count", "FailIndex", "FailJob", "Ignore"}, []string{"batch.v1.PodFailurePolicyRule.action"}},
	{
		[]string{
			"any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only",
			"digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement",
			"key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping",
		},
		[]string{
			"certificates.v1.CertificateSigningRequestSpec.usages",
		},
	},
	{[]string{"Localhost", "RuntimeDefault", "Unconfined"}, []string{"core.v1.AppArmorProfile.type", "core.v1.SeccompProfile.type"}},
	{[]string{"None", "ReadOnly", "ReadWrite"}, []string{"core.v1.AzureDiskVolumeSource.cachingMode"}},
	{[]string{"Dedicated", "Managed", "Shared"}, []string{"core.v1.AzureDiskVolumeSource.kind"}},
	{
		[]string{
			"Always", "IfNotPresent", "Never",
		},
		[]string{
			"core.v1.Container.imagePullPolicy", "core.v1.EphemeralContainer.imagePullPolicy", "core.v1.ImageVolumeSource.pullPolicy",
		},
	},
	{[]string{"FallbackToLogsOnError", "File"}, []string{"core.v1.Container.terminationMessagePolicy",
		"core.v1.EphemeralContainer.terminationMessagePolicy"}},
	{
		[]string{
			"SCTP", "TCP", "UDP",
		},
		[]string{
			"core.v1.ContainerPort.protocol", "core.v1.EndpointPort.protocol", "core.v1.PortStatus.protocol",
			"core.v1.ServicePort.protocol", "discovery.v1.EndpointPort.protocol", "networking.v1.IngressPortStatus.protocol",
			"networking.v1.NetworkPolicyPort.protocol",
		},
	},
	{
		[]string{
			"SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT",
			"SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX", "SIGRTMAX-1", "SIGRTMAX-10", "SIGRTMAX-11",
			"SIGRTMAX-12", "SIGRTMAX-13", "SIGRTMAX-14", "SIGRTMAX-2", "SIGRTMAX-3", "SIGRTMAX-4", "SIGRTMAX-5", "SIGRTMAX-6", "SIGRTMAX-7",
			"SIGRTMAX-8", "SIGRTMAX-9", "SIGRTMIN", "SIGRTMIN+1", "SIGRTMIN+10", "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14",
			"SIGRTMIN+15", "SIGRTMIN+2", "SIGRTMIN+3", "SIGRTMIN+4", "SIGRTMIN+5", "SIGRTMIN+6", "SIGRTMIN+7", "SIGRTMIN+8", "SIGRTMIN+9",
			"SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1",
			"SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ",
		},
		[]string{
			"core.v1.ContainerStatus.stopSignal", "core.v1.Lifecycle.stopSignal",
		},
	},
	{[]string{"Plaintext", "TLS"}, []string{"core.v1.GRPCAction.mode"}},
	{[]string{"HTTP1", "HTTP2"}, []string{"core.v1.HTTPGetAction.protocol"}},
	{[]string{"HTTP", "HTTPS"}, []string{"core.v1.HTTPGetAction.scheme"}},
	{[]string{"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"},
		[]string{"core.v1.HostPathVolumeSource.type"}},
	{[]string{"InProgress", "Infeasible", "Pending"}, []string{"core.v1.ModifyVolumeStatus.status"}},
	{[]string{"Active", "Terminating"}, []string{"core.v1.NamespaceStatus.phase"}},
	{[]string{"DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"}, []string{"core.v1.NodeSelectorRequirement.operator"}},
	{[]string{"Pending", "Running", "Terminated"}, []string{"core.v1.NodeStatus.phase"}},
	{
		[]string{
			"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod",
		},
		[]string{
			"core.v1.PersistentVolumeClaimSpec.accessModes", "core.v1.PersistentVolumeClaimStatus.accessModes",
			"core.v1.PersistentVolumeSpec.accessModes", "storage.v1.StorageHealthCondition.accessMode",
		},
	},
	{
		[]string{
			"Block", "Filesystem",
		},
		[]string{
			"core.v1.PersistentVolumeClaimSpec.volumeMode", "core.v1.PersistentVolumeSpec.volumeMode",
			"storage.v1.StorageHealthCondition.volumeMode",
		},
	},
	{
		[]string{
			"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending",
		},
		[]string{
			"core.v1.PersistentVolumeClaimStatus.allocatedResourceStatuses",
		},
	},
	{[]string{"Bound", "Lost", "Pending"}, []string{"core.v1.PersistentVolumeClaimStatus.phase"}},
	{[]string{"Delete", "Recycle", "Retain"}, []string{"core.v1.PersistentVolumeSpec.persistentVolumeReclaimPolicy",
		"storage.v1.StorageClass.reclaimPolicy"}},
	{[]string{"Available", "Bound", "Failed", "Pending", "Released"}, []string{"core.v1.PersistentVolumeStatus.phase"}},
	{[]string{"Always", "OnRootMismatch"}, []string{"core.v1.PodSecurityContext.fsGroupChangePolicy"}},
	{[]string{"Merge", "Strict"}, []string{"core.v1.PodSecurityContext.supplementalGroupsPolicy"}},
	{[]string{"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"}, []string{"core.v1.PodSpec.dnsPolicy"}},
	{[]string{"Never", "PreemptLowerPriority"}, []string{"core.v1.PodSpec.preemptionPolicy", "scheduling.v1.PriorityClass.preemptionPolicy"}},
	{[]string{"Always", "Never", "OnFailure"}, []string{"core.v1.PodSpec.restartPolicy"}},
	{[]string{"Failed", "Pending", "Running", "Succeeded", "Unknown"}, []string{"core.v1.PodStatus.phase"}},
	{[]string{"BestEffort", "Burstable", "Guaranteed"}, []string{"core.v1.PodStatus.qosClass"}},
	{
		[]string{
			"BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass", "Terminating",
			"VolumeAttributesClass",
		},
		[]string{
			"core.v1.ResourceQuotaSpec.scopes", "core.v1.ScopedResourceSelectorRequirement.scopeName",
		},
	},
	{[]string{"DoesNotExist", "Exists", "In", "NotIn"}, []string{"core.v1.ScopedResourceSelectorRequirement.operator"}},
	{[]string{"Default", "Unmasked"}, []string{"core.v1.SecurityContext.procMount"}},
	{[]string{"Cluster", "Local"}, []string{"core.v1.ServiceSpec.externalTrafficPolicy", "core.v1.ServiceSpec.internalTrafficPolicy"}},
	{[]string{"", "IPv4", "IPv6"}, []string{"core.v1.ServiceSpec.ipFamilies"}},
	{[]string{"PreferDualStack", "RequireDualStack", "SingleStack"}, []string{"core.v1.ServiceSpec.ipFamilyPolicy"}},
	{[]string{"ClientIP", "None"}, []string{"core.v1.ServiceSpec.sessionAffinity"}},
	{[]string{"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}, []string{"core.v1.ServiceSpec.type"}},
	{[]string{"NoExecute", "NoSchedule", "PreferNoSchedule"}, []string{"core.v1.Taint.effect", "core.v1.Toleration.effect"}},
	{[]string{"Equal", "Exists", "Gt", "Lt"}, []string{"core.v1.Toleration.operator"}},
	{[]string{"Honor", "Ignore"}, []string{"core.v1.TopologySpreadConstraint.nodeAffinityPolicy",
		"core.v1.TopologySpreadConstraint.nodeTaintsPolicy"}},
	{[]string{"DoNotSchedule", "ScheduleAnyway"}, []string{"core.v1.TopologySpreadConstraint.whenUnsatisfiable"}},
	{[]string{"DataLoss", "Degraded", "Inaccessible"}, []string{"core.v1.VolumeHealthCondition.status"}},
	{[]string{"Bidirectional", "HostToContainer", "None"}, []string{"core.v1.VolumeMount.mountPropagation"}},
	{[]string{"FQDN", "IPv4", "IPv6"}, []string{"discovery.v1.EndpointSlice.addressType"}},
	{[]string{"Exact", "ImplementationSpecific", "Prefix"}, []string{"networking.v1.HTTPIngressPath.pathType"}},
	{[]string{"Egress", "Ingress"}, []string{"networking.v1.NetworkPolicySpec.policyTypes"}},
	{[]string{"AlwaysAllow", "IfHealthyBudget"}, []string{"policy.v1.PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy"}},
	{[]string{"FromClaim", "FromClass"}, []string{"resource.v1.DeviceAllocationConfiguration.source"}},
	{
		[]string{
			"*", "NodePrepareResources", "NodeUnprepareResources",
		},
		[]string{
			"resource.v1.DeviceRequestAllocationResult.skipNodeOperations", "resource.v1.ResourceSliceSpec.skipNodeOperations",
		},
	},
	{[]string{"All", "ExactCount"}, []string{"resource.v1.DeviceSubRequest.allocationMode", "resource.v1.ExactDeviceRequest.allocationMode"}},
	{[]string{"NoExecute", "NoSchedule", "None"}, []string{"resource.v1.DeviceTaint.effect", "resource.v1.DeviceToleration.effect"}},
	{[]string{"Equal", "Exists"}, []string{"resource.v1.DeviceToleration.operator"}},
	{[]string{"Immediate", "WaitForFirstConsumer"}, []string{"storage.v1.StorageClass.volumeBindingMode"}},
	{[]string{"StorageDegraded", "StorageUnreachable"}, []string{"storage.v1.StorageHealthCondition.status"}},
	{[]string{"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"},
		[]string{"apiextensions.v1.ValidationRule.reason"}},
})

// enumeration are the values of some fields, named as in "core.v1.PodSpec.dnsPolicy".
type enumeration struct{ values, fields []string }

func byField(all []enumeration) map[string][]string {
	out := map[string][]string{}
	for _, e := range all {
		for _, name := range e.fields {
			out[name] = e.values
		}
	}
	return out
}
