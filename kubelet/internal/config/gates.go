package config

// gates are those of upstream's feature gates that this kubelet is otherwise by
// than upstream's: what of their features it does not have, or always has.
var gates = map[string]bool{
	"EventedPLEG": true, "PodAndContainerStatsFromCRI": true,

	"MemoryQoS": false, "PodsAPI": false,
	"KubeletEnsureSecretPulledImages": false, "KubeletServiceAccountTokenForCredentialProviders": false,
	"ExtendWebSocketsToKubelet": false,
	"ResourceHealthStatus":      false, "ResourceHealthStatusMessage": false,
	"CPUManagerPolicyBetaOptions": false, "TopologyManagerPolicyBetaOptions": false,
	"DRAConsumableCapacity": false, "DRAPartitionableDevices": false, "DRADeviceBindingConditions": false,
	"DynamicResourceAllocation": false, "NodeSwap": false, "NodeLogQuery": false,
	"KubeletPodResourcesGet": false, "KubeletPodResourcesDynamicResources": false,
}

// PullsAtOnce is how many images are pulled at one time; zero for the default.
func (c *Config) PullsAtOnce() int {
	if c.SerializePulls && c.ParallelPulls == 0 {
		return 1
	}
	return c.ParallelPulls
}

// DeclaredFeatures are those that the node says that it has (KEP-5328): what of
// Kubernetes 1.37's list this kubelet does.
func (*Config) DeclaredFeatures() []string {
	return []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"}
}
