package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The feature gates of Kubernetes 1.37's API server by what they are without
// the flag. What is on there is simply there here, or is not needed; what is
// off is not there.
var gatesOn = []string{
	"APIResponseCompression", "APIServerIdentity", "AllowParsingUserUIDFromCertAuth",
	"AllowUnsafeMalformedObjectDeletion", "AtomicFIFO", "AuthorizePodWebsocketUpgradeCreatePermission",
	"CPUManagerPolicyBetaOptions", "CRDObservedGenerationTracking", "ClearingNominatedNodeNameAfterBinding",
	"ClientsAllowCARotation", "ClientsAllowTLSCacheGC", "ComponentFlagz", "ComponentStatusz",
	"ConcurrentWatchObjectDecode", "ConstrainedImpersonation", "ContainerCheckpoint", "ContainerRestartRules",
	"ContextualLogging", "DOSMitigation", "DRAConsumableCapacity", "DRADeviceBindingConditions",
	"DRAFractionalCapacityRange", "DRAPartitionableDevices", "DRAResourceClaimGranularStatusAuthorization",
	"DRASchedulerFilterTimeout", "DeclarativeValidationBeta", "DeploymentReplicaSetTerminatingReplicas",
	"DetectCacheInconsistency", "EnvFiles", "EtcdRangeStream", "ExcludeAdmissionWebhookVirtualResources",
	"ExtendWebSocketsToKubelet", "GracefulNodeShutdown", "GracefulNodeShutdownBasedOnPodPriority", "HPAGeneration",
	"HPAOptimizedSelectorStore", "HPAScaleToZero", "HugepageAwareEviction", "InOrderInformersBatchProcess",
	"InPlacePodLevelResourcesVerticalScaling", "KubeletCrashLoopBackOffMax", "KubeletEnsureSecretPulledImages",
	"KubeletInUserNamespace", "KubeletSeparateDiskGC", "KubeletServiceAccountTokenForCredentialProviders",
	"ListFromCacheSnapshot", "LoggingBetaOptions", "ManifestBasedAdmissionControlConfig",
	"MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge", "MaxUnavailableStatefulSet",
	"MemoryQoS", "MutablePodResourcesForSuspendedJobs", "MutableSchedulingDirectivesForSuspendedJobs",
	"NFTablesNetlink", "NativeHistograms", "NodeControllerLeaseCircuitBreaker", "NominatedNodeNameForExpectation",
	"OpenAPIEnums", "OpportunisticBatching", "PersistentVolumeClaimUnusedSinceTime", "PodDeletionCost",
	"PodLevelResources", "PodLevelResourcesFixDefaulting", "PodLevelResourcesFixKubeletQOSClass",
	"PodTopologyLabelsAdmission", "PodsAPI", "PortForwardWebsockets", "ReloadKubeletClientCAFile",
	"ReloadKubeletServerCertificateFile", "RemoteRequestHeaderUID", "ResourceHealthStatus",
	"ResourceHealthStatusMessage", "RestartAllContainersOnContainerExits", "RotateKubeletServerCertificate",
	"SchedulerAsyncPreemption", "SchedulerPopFromBackoffQ", "ServiceAccountNodeAudienceRestriction",
	"SizeBasedListCostEstimate", "StaleControllerConsistencyDaemonSet", "StaleControllerConsistencyHPA",
	"StaleControllerConsistencyJob", "StaleControllerConsistencyReplicaSet", "StaleControllerConsistencyStatefulSet",
	"StatefulSetSemanticRevisionComparison", "StorageCapacityScoring", "StorageVersionHash", "StrictIPCIDRValidation",
	"StructuredAuthenticationConfigurationEgressSelector", "StructuredAuthenticationConfigurationJWKSMetrics",
	"TokenRequestServiceAccountUIDValidation", "TopologyManagerPolicyBetaOptions",
	"TranslateStreamCloseWebsocketRequests", "UnknownVersionInteroperabilityProxy", "UnlockWhileProcessingFIFO",
	"VolumeLimitScaling", "WatchList", "WatchListClient", "WatchListCompression", "WebhookRoundTripLoadBalancing",
	"WindowsGracefulNodeShutdown",
}

var gatesOff = []string{
	"APIServerWebhookAuthenticationToken", "APIServingWithRoutine", "AtomicWriteVolumeUserFields",
	"CBORServingAndStorage", "CContainerProbe", "CPUManagerPolicyAlphaOptions", "CRIListStreaming", "CSIVolumeHealth",
	"ClientsAllowCBOR", "ClientsPreferCBOR", "CloudControllerManagerWatchBasedRoutesReconciliation",
	"CloudControllerManagerWebhook", "CompositePodGroup", "ConsistentListFromCacheSkipTimeoutFallback",
	"ContainerStopSignals", "ControllerManagerReleaseLeaderElectionLockOnExit", "CoordinatedLeaderElection",
	"CrossNamespaceVolumeDataSource", "DRADerivedAttributes", "DRADeviceCompatibilityGroups",
	"DRAFractionalCapacityRange", "DRAListTypeAttributes", "DRANodeAllocatableResources", "DRAOptionalNodeOperations",
	"DRAPartitionableDevicesType", "DRAResourcePoolStatus", "DRAWorkloadResourceClaims", "DefaultPodSysctls",
	"EmptyDirVolumeMode", "EventedPLEG", "EvictionRequestAPI", "GRPCContainerProbeTLS", "GenericWorkload",
	"ImageVolumeWithDigest", "InPlacePodVerticalScalingExclusiveCPUs", "InPlacePodVerticalScalingExclusiveMemory",
	"InPlacePodVerticalScalingMemoryBackedVolumes", "InPlacePodVerticalScalingSchedulerPreemption",
	"InterPodAffinityHostnameFastPath", "KubeProxyNFTablesLocalhostNodePorts", "KubeletAllocatedPodsEndpoint",
	"LocalStorageCapacityIsolationFSQuotaMonitoring", "LoggingAlphaOptions", "MutablePVNodeAffinity",
	"NodeLifecycleConditions", "PodAndContainerStatsFromCRI", "PodGroupPreemptionPolicy", "PodLevelResourceManagers",
	"PodLogsQuerySplitStreams", "QOSReserved", "ReduceDefaultCrashLoopBackOffDecay", "RuntimeClassInImageCriApi",
	"SchedulerAsyncAPICalls", "SchedulerPreQueueingHints", "ShardedListAndWatch", "StatefulSetRecreateStrategy",
	"StorageVersionAPI", "TaintTolerationComparisonOperators", "TopologyAwareWorkloadScheduling",
	"TopologyManagerPolicyAlphaOptions", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions",
	"WindowsCPUAndMemoryAffinity", "WorkloadWithJob",
}

// validateGates takes the gates as they are by default, and refuses by name to
// switch one: none of them changes what this server does.
func validateGates(gates map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		value := strings.ToLower(gates[name])
		if value != "true" && value != "false" {
			errs = append(errs, fmt.Errorf("--feature-gates=%s=%s: must be true or false", name, gates[name]))
			continue
		}
		on := value == "true"
		switch {
		case name == "AllAlpha" && !on, name == "AllBeta", on && slices.Contains(gatesOn, name), !on && slices.Contains(gatesOff, name):
		case name == "AllAlpha", slices.Contains(gatesOff, name):
			errs = append(errs, fmt.Errorf("--feature-gates=%s=true: not supported", name))
		case slices.Contains(gatesOn, name):
			errs = append(errs, fmt.Errorf("--feature-gates=%s=false: not supported, it can't be switched off", name))
		default:
			errs = append(errs, fmt.Errorf("--feature-gates=%s: unknown feature gate of Kubernetes 1.37, or one that has been decided there", name))
		}
	}
	return errors.Join(errs...)
}
