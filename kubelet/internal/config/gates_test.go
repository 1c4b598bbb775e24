package config

import (
	"slices"
	"strings"
	"testing"

	"kctl/proto/release"
)

// The gates that upstream has on, or locked on, by what they are here. Where a new Kubernetes adds one, somebody
// has to find out which it is: kubernetes_feature_enabled must not tell of what nobody has thought of.
var (
	gatesHere = strings.Fields(`
	ClusterTrustBundleProjection ComponentFlagz ComponentStatusz ContainerCheckpoint ContainerRestartRules
	CustomCPUCFSQuotaPeriod DisableNodeKubeProxyVersion EnvFiles ExecProbeTimeout GracefulNodeShutdown
	GracefulNodeShutdownBasedOnPodPriority HostnameOverride HugepageAwareEviction ImageMaximumGCAge ImageVolume
	InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScaling InPlacePodVerticalScalingInitContainers
	KubeletCgroupDriverFromCRI KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz
	KubeletInUserNamespace KubeletPSI KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders
	KubeletTracing MemoryQoS NativeHistograms NodeDeclaredFeatures NodeLogQuery NodeSwap PLEGOnDemandRelist PodCertificateRequest
	PodLevelResources PodLevelResourcesFixKubeletQOSClass PodObservedGenerationTracking
	PodReadyToStartContainersCondition ProcMountType RecursiveReadOnlyMounts RelaxedEnvironmentVariableValidation
	ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RestartAllContainersOnContainerExits
	RotateKubeletServerCertificate SupplementalGroupsPolicy SystemdWatchdog UserNamespacesSupport`)
	// gatesIdle are of volumes, CPUs and machines that this kubelet refuses by name or does not run on: there is
	// nothing that they could change.
	gatesIdle = strings.Fields(`
	CSIServiceAccountTokenSecrets DisableCPUQuotaWithExclusiveCPUs MutableCSINodeAllocatableCount
	RecoverVolumeExpansionFailure SELinuxChangePolicy SELinuxMount SELinuxMountReadWriteOncePod
	WindowsGracefulNodeShutdown`)
	// gatesOfOthers are for other programs and for libraries that this kubelet does not have.
	gatesOfOthers = strings.Fields(`
	APIResponseCompression APIServerIdentity AggregatedDiscoveryRemoveBetaType AllowParsingUserUIDFromCertAuth
	AllowServiceExternalIPs AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
	CRDObservedGenerationTracking CRDValidationRatcheting ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation
	ClientsAllowTLSCacheGC ClusterTrustBundle ConcurrentWatchObjectDecode ConstrainedImpersonation ContextualLogging
	CustomResourceFieldSelectors DRAAdminAccess DRADeviceTaintRules DRADeviceTaints DRAPrioritizedList
	DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
	DeclarativeValidation DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency
	DisableAllocatorDualWrite EtcdRangeStream ExcludeAdmissionWebhookVirtualResources ExternalServiceAccountTokenSigner
	HPAConfigurableTolerance HPAGeneration HPAOptimizedSelectorStore HPAScaleToZero InOrderInformers
	InOrderInformersBatchProcess InformerResourceVersion JobManagedBy KubeProxyIPVS ListFromCacheSnapshot
	LoggingBetaOptions ManifestBasedAdmissionControlConfig MatchLabelKeysInPodAffinity MatchLabelKeysInPodTopologySpread
	MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MultiCIDRServiceAllocator
	MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs MutatingAdmissionPolicy
	NFTablesNetlink NFTablesProxyMode NodeControllerLeaseCircuitBreaker NodeInclusionPolicyInPodTopologySpread
	NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PersistentVolumeClaimUnusedSinceTime
	PodDeletionCost PodLevelResourcesFixDefaulting PodSchedulingReadiness PodTopologyLabelsAdmission
	PortForwardWebsockets PreferSameTrafficDistribution RelaxedServiceNameValidation RemoteRequestHeaderUID
	SchedulerAsyncPreemption SchedulerPopFromBackoffQ SeparateTaintEvictionController
	ServiceAccountNodeAudienceRestriction ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
	ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo ServiceCIDRStatusFieldWiping
	SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyHPA
	StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
	StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageNamespaceIndex StorageVersionHash
	StorageVersionMigrator StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
	StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
	TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy
	UnlockWhileProcessingFIFO VolumeAttributesClass VolumeLimitScaling WatchCacheInitializationPostStartHook WatchList
	WatchListClient WatchListCompression WebhookRoundTripLoadBalancing WinDSR WinOverlay`)
)

// Each gate that is on is known to be there, or not to be.
func TestGatesAreThoughtOf(t *testing.T) {
	known := slices.Concat(gatesHere, gatesIdle, gatesOfOthers)
	for _, gate := range release.Gates(nil) {
		has, differs := Gates[gate.Name]
		if !gate.Enabled {
			if !has && differs || slices.Contains(known, gate.Name) {
				t.Errorf("%s is off anyway", gate.Name)
			}
			continue
		}
		if listed := slices.Contains(known, gate.Name); listed == differs {
			t.Errorf("%s: is it there? listed: %t; in Gates: %t", gate.Name, listed, differs)
		}
		if differs && has {
			t.Errorf("%s is on anyway", gate.Name)
		}
	}
	for i, name := range known {
		if slices.Contains(known[:i], name) {
			t.Errorf("%s is listed twice", name)
		}
		if !slices.ContainsFunc(release.Gates(nil), func(gate release.Gate) bool { return gate.Name == name }) {
			t.Errorf("Kubernetes has no gate %s", name)
		}
	}
}
