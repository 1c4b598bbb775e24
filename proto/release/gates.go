package release

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The feature gates of Kubernetes 1.37, which all of its programs know, by their
// defaults. Those in the last two lists are locked and can't be switched
// upstream either.
var (
	gatesOn = strings.Fields(`
	APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs
	AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
	CPUManagerPolicyBetaOptions CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
	ClientsAllowCARotation ClientsAllowTLSCacheGC ClusterTrustBundle ClusterTrustBundleProjection
	ComponentFlagz ComponentStatusz ConcurrentWatchObjectDecode ConstrainedImpersonation
	ContainerCheckpoint ContainerRestartRules ContextualLogging CustomCPUCFSQuotaPeriod
	DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaintRules DRADeviceTaints
	DRAPartitionableDevices DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
	DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles
	EtcdRangeStream ExcludeAdmissionWebhookVirtualResources ExtendWebSocketsToKubelet
	GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAGeneration HPAOptimizedSelectorStore
	HPAScaleToZero HugepageAwareEviction InOrderInformersBatchProcess
	InPlacePodLevelResourcesVerticalScaling InformerResourceVersion KubeProxyIPVS
	KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletInUserNamespace
	KubeletPodResourcesListUseActivePods KubeletSeparateDiskGC
	KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
	ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread
	MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
	MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
	MutatingAdmissionPolicy NFTablesNetlink NativeHistograms NodeControllerLeaseCircuitBreaker
	NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
	PersistentVolumeClaimUnusedSinceTime PodCertificateRequest PodDeletionCost PodLevelResources
	PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass PodTopologyLabelsAdmission
	PodsAPI PortForwardWebsockets ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile
	RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
	RestartAllContainersOnContainerExits RotateKubeletServerCertificate SELinuxMount
	SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction
	ServiceCIDRStatusFieldWiping SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet
	StaleControllerConsistencyHPA StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
	StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageCapacityScoring
	StorageNamespaceIndex StorageVersionHash StorageVersionMigrator StrictIPCIDRValidation
	StructuredAuthenticationConfigurationEgressSelector
	StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
	TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
	UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO
	VolumeLimitScaling WatchList WatchListClient WatchListCompression WebhookRoundTripLoadBalancing
	WindowsGracefulNodeShutdown`)
	gatesOff = strings.Fields(`
	APIServerWebhookAuthenticationToken APIServingWithRoutine AllowDNSOnlyNodeCSR
	AllowInsecureKubeletCertificateSigningRequests AtomicWriteVolumeUserFields CBORServingAndStorage
	CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth ChangeContainerStatusOnKubeletRestart
	ClientsAllowCBOR ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
	CloudControllerManagerWebhook CompositePodGroup ConsistentListFromCacheSkipTimeoutFallback
	ContainerStopSignals ControllerManagerReleaseLeaderElectionLockOnExit CoordinatedLeaderElection
	CrossNamespaceVolumeDataSource DRADerivedAttributes DRADeviceCompatibilityGroups
	DRAFractionalCapacityRange DRAListTypeAttributes DRANodeAllocatableResources
	DRAOptionalNodeOperations DRAPartitionableDevicesType DRAResourcePoolStatus
	DRAWorkloadResourceClaims DefaultPodSysctls EmptyDirVolumeMode EventedPLEG EvictionRequestAPI
	GRPCContainerProbeTLS GenericWorkload H2CContainerProbe ImageVolumeWithDigest
	InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
	InPlacePodVerticalScalingMemoryBackedVolumes InPlacePodVerticalScalingSchedulerPreemption
	InterPodAffinityHostnameFastPath KMSv1 KubeProxyNFTablesLocalhostNodePorts
	KubeletAllocatedPodsEndpoint KubeletRegistrationGetOnExistsOnly
	LocalStorageCapacityIsolationFSQuotaMonitoring LoggingAlphaOptions MutablePVNodeAffinity
	NodeLifecycleConditions PodAndContainerStatsFromCRI PodGroupPreemptionPolicy
	PodLevelResourceManagers PodLogsQuerySplitStreams QOSReserved ReduceDefaultCrashLoopBackOffDecay
	RuntimeClassInImageCriApi SchedulerAsyncAPICalls SchedulerPreQueueingHints ShardedListAndWatch
	StatefulSetRecreateStrategy StorageVersionAPI TaintTolerationComparisonOperators
	TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
	VolumeBindMountOptions WindowsCPUAndMemoryAffinity WindowsHostNetwork WorkloadWithJob`)
	gatesLockedOn = strings.Fields(`
	AggregatedDiscoveryRemoveBetaType CPUManagerPolicyOptions CRDValidationRatcheting
	CSIServiceAccountTokenSecrets CustomResourceFieldSelectors DRAAdminAccess DRAExtendedResource
	DRAPrioritizedList DRAResourceClaimDeviceStatus DeclarativeValidation DisableAllocatorDualWrite
	DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion DynamicResourceAllocation
	ExecProbeTimeout ExternalServiceAccountTokenSigner HPAConfigurableTolerance HostnameOverride
	ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
	InPlacePodVerticalScalingInitContainers JobManagedBy KubeletCgroupDriverFromCRI
	KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet
	KubeletTracing MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
	NFTablesProxyMode NodeDeclaredFeatures NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
	PLEGOnDemandRelist PodObservedGenerationTracking PodReadyToStartContainersCondition
	PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
	RecursiveReadOnlyMounts RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation
	SELinuxChangePolicy SELinuxMountReadWriteOncePod SeparateTaintEvictionController
	ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
	ServiceAccountTokenPodNodeInfo SupplementalGroupsPolicy SystemdWatchdog
	TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass
	WatchCacheInitializationPostStartHook WinDSR WinOverlay`)
	gatesLockedOff = strings.Fields(`
	AllowOverwriteTerminationGracePeriodSeconds DeclarativeValidationTakeover GitRepoVolumeDriver
	SeparateCacheWatchRPC`)
)

// Those that are not in the stage that their list stands for: beta where it is on by
// default, alpha where it is off, general availability where it is locked on, and
// deprecated where it is locked off.
var (
	gatesGA = strings.Fields(`
	AllowServiceExternalIPs ClusterTrustBundle ClusterTrustBundleProjection CustomCPUCFSQuotaPeriod
	DRADeviceTaintRules DRADeviceTaints InformerResourceVersion MutatingAdmissionPolicy
	PodCertificateRequest SELinuxMount StorageVersionMigrator`)
	gatesBeta = strings.Fields(`
	CoordinatedLeaderElection DRAFractionalCapacityRange DRAWorkloadResourceClaims GenericWorkload
	LocalStorageCapacityIsolationFSQuotaMonitoring PodAndContainerStatsFromCRI
	PodLevelResourceManagers SchedulerAsyncAPICalls`)
	gatesDeprecated = strings.Fields(`
	AggregatedDiscoveryRemoveBetaType AllowDNSOnlyNodeCSR
	AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
	DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion KMSv1 KubeProxyIPVS
	KubeletPodResourcesListUseActivePods KubeletRegistrationGetOnExistsOnly ServiceCIDRStatusFieldWiping
	StorageNamespaceIndex WindowsHostNetwork`)
)

// Gate is a feature gate of Kubernetes.
type Gate struct {
	Name string
	// Stage is ALPHA, BETA or DEPRECATED, and empty for a feature that is generally
	// available.
	Stage   string
	Enabled bool
}

// Gates returns all feature gates and whether the program has the feature: by upstream's
// default, except for the gates in differs.
func Gates(differs map[string]bool) []Gate {
	all := []Gate{{Name: "AllAlpha", Stage: "ALPHA"}, {Name: "AllBeta", Stage: "BETA"}}
	for _, list := range []struct {
		names   []string
		stage   string
		enabled bool
	}{{gatesOn, "BETA", true}, {gatesOff, "ALPHA", false}, {gatesLockedOn, "", true}, {gatesLockedOff, "DEPRECATED", false}} {
		for _, name := range list.names {
			gate := Gate{Name: name, Stage: list.stage, Enabled: list.enabled}
			switch {
			case slices.Contains(gatesGA, name):
				gate.Stage = ""
			case slices.Contains(gatesBeta, name):
				gate.Stage = "BETA"
			case slices.Contains(gatesDeprecated, name):
				gate.Stage = "DEPRECATED"
			}
			if does, differ := differs[name]; differ {
				gate.Enabled = does
			}
			all = append(all, gate)
		}
	}
	return all
}

// CheckGates accepts feature gates that ask for what the program does anyway,
// and refuses, by name, to change one: no gate changes what the program does.
// That is upstream's default, except for the gates in differs.
func CheckGates(gates map[string]string, differs map[string]bool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if err := checkGate(name, gates[name], differs); err != nil {
			errs = append(errs, fmt.Errorf("--feature-gates=%s=%s: %w", name, gates[name], err))
		}
	}
	return errors.Join(errs...)
}

func checkGate(name, value string, differs map[string]bool) error {
	asked, err := strconv.ParseBool(value)
	if err != nil {
		return errors.New("must be true or false")
	}
	does, differ := differs[name]
	switch {
	case differ && asked == does:
		return nil
	case slices.Contains(gatesLockedOn, name) && !asked, slices.Contains(gatesLockedOff, name) && asked:
		return fmt.Errorf("the feature is locked to %t", !asked)
	case differ:
	case name == "AllBeta", name == "AllAlpha" && !asked,
		asked && (slices.Contains(gatesOn, name) || slices.Contains(gatesLockedOn, name)),
		!asked && (slices.Contains(gatesOff, name) || slices.Contains(gatesLockedOff, name)):
		return nil
	case slices.Contains(gatesOn, name):
		return errors.New("not supported: this feature can't be turned off")
	case name != "AllAlpha" && !slices.Contains(gatesOff, name):
		return errors.New("unknown feature gate of Kubernetes " + Kubernetes)
	}
	return errors.New("not supported")
}
