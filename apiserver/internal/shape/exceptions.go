package shape

import (
	"reflect"
	"strings"
)

// merge is how a field is merged.
type merge struct {
	Kind Kind
	Keys []string
}

// mergeOf is how the field of a struct is merged. Mostly that follows from the
// tags for strategic merge patches: lists with a merge key are Keyed, others
// that are merged are Sets, and those without tags are atomic. The table below
// has the differences of server-side apply.
func mergeOf(in reflect.Type, field reflect.StructField, name string) merge {
	if m, ok := exceptions[shortName(in)+"."+name]; ok {
		return m
	}
	t := field.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		switch key := field.Tag.Get("patchMergeKey"); {
		case !strings.Contains(field.Tag.Get("patchStrategy"), "merge"):
			return merge{Kind: AtomicList}
		case key != "":
			return merge{Kind: Keyed, Keys: []string{key}}
		}
		return merge{Kind: Set}
	}
	return merge{Kind: of(t).Kind}
}

// atomicStruct reports whether values of a type are replaced as a whole
// everywhere.
func atomicStruct(t reflect.Type) bool {
	path := strings.Split(t.PkgPath(), "/")
	versioned := path[len(path)-1] + "." + t.Name()
	if len(path) > 1 {
		versioned = path[len(path)-2] + "/" + versioned
	}
	return atomicStructs[shortName(t)] || atomicStructs[versioned]
}

// shortName is a type's name with its group but no version: "core.PodSpec".
func shortName(t reflect.Type) string {
	path := strings.Split(t.PkgPath(), "/")
	if len(path) < 2 {
		return t.Name()
	}
	return path[len(path)-2] + "." + t.Name()
}

func keys(names ...string) merge { return merge{Kind: Keyed, Keys: names} }

var (
	set        = merge{Kind: Set}
	atomicList = merge{Kind: AtomicList}
	atomicMap  = merge{Kind: AtomicMap}
)

var exceptions = map[string]merge{
	"admissionregistration.ValidatingAdmissionPolicyBindingSpec.validationActions": set,
	"admissionregistration.ValidatingAdmissionPolicyStatus.conditions":             keys("type"),
	"apiextensions.CustomResourceDefinitionStatus.conditions":                      keys("type"),
	"batch.JobStatus.conditions":                                                   atomicList,
	"batch.PodFailurePolicyOnExitCodesRequirement.values":                          set,
	"batch.UncountedTerminatedPods.failed":                                         set,
	"batch.UncountedTerminatedPods.succeeded":                                      set,
	"certificates.CertificateSigningRequestStatus.conditions":                      keys("type"),
	"core.Container.ports":                                                         keys("containerPort", "protocol"),
	"core.ContainerRestartRuleOnExitCodes.values":                                  set,
	"core.EphemeralContainerCommon.ports":                                          keys("containerPort", "protocol"),
	"core.NodeAllocatableResourceClaimStatus.containers":                           set,
	"core.NodePodPreemptionPolicy.disableResizePreemption":                         set,
	"core.PersistentVolumeSpec.claimRef":                                           {Kind: Struct},
	"core.PodSpec.nodeSelector":                                                    atomicMap,
	"core.PodSpec.topologySpreadConstraints":                                       keys("topologyKey", "whenUnsatisfiable"),
	"core.PodStatus.hostIPs":                                                       atomicList,
	"core.PodStatus.volumeHealth":                                                  keys("name"),
	"core.PodVolumeHealth.healthConditions":                                        keys("status", "reason"),
	"core.ReplicationControllerSpec.selector":                                      atomicMap,
	"core.ResourceRequirements.claims":                                             keys("name"),
	"core.ResourceStatus.resources":                                                keys("resourceID"),
	"core.ServiceSpec.ports":                                                       keys("port", "protocol"),
	"core.ServiceSpec.selector":                                                    atomicMap,
	"core.VolumeHealthStatus.healthConditions":                                     keys("status", "reason"),
	"core.VolumeMount.bindMountOptions":                                            set,
	"discovery.Endpoint.addresses":                                                 set,
	"flowcontrol.NonResourcePolicyRule.nonResourceURLs":                            set,
	"flowcontrol.NonResourcePolicyRule.verbs":                                      set,
	"flowcontrol.ResourcePolicyRule.apiGroups":                                     set,
	"flowcontrol.ResourcePolicyRule.namespaces":                                    set,
	"flowcontrol.ResourcePolicyRule.resources":                                     set,
	"flowcontrol.ResourcePolicyRule.verbs":                                         set,
	"node.Scheduling.nodeSelector":                                                 atomicMap,
	"resource.AllocatedDeviceStatus.conditions":                                    keys("type"),
	"resource.DeviceRequestAllocationResult.skipNodeOperations":                    set,
	"resource.ResourceClaimStatus.devices":                                         keys("driver", "device", "pool", "shareID"),
	"resource.ResourceSliceSpec.skipNodeOperations":                                set,
	"storage.CSIDriverSpec.volumeLifecycleModes":                                   set,
}

// keyDefaults are the API's defaults of list keys.
var keyDefaults = map[string]any{
	"core.ContainerPort.protocol":    "TCP",
	"core.LocalObjectReference.name": "",
	"core.ServicePort.protocol":      "TCP",
}

var atomicStructs = names(
	"admissionregistration.MatchResources", "admissionregistration.NamedRuleWithOperations", "admissionregistration.ParamKind",
	"admissionregistration.ParamRef", "admissionregistration.Variable",
	"autoscaling/v1.CrossVersionObjectReference", // and not v2's
	"core.ConfigMapKeySelector", "core.EndpointAddress", "core.EndpointPort", "core.EvictionResponder", "core.FileKeySelector",
	"core.LocalObjectReference", "core.NodeSelector", "core.NodeSelectorTerm", "core.ObjectFieldSelector", "core.ObjectReference",
	"core.ResourceFieldSelector", "core.ScopeSelector", "core.SecretKeySelector", "core.SecretReference",
	"core.TopologySelectorTerm", "core.TypedLocalObjectReference",
	"discovery.EndpointPort",
	"meta.LabelSelector", "meta.OwnerReference",
	"networking.ServiceBackendPort",
	"rbac.RoleRef", "rbac.Subject",
)

// whole are fields that are replaced as a whole, whatever their type.
var whole = names("apps.ControllerRevision.data")

// free are types with unknown fields.
var free = names("io.k8s.apimachinery.pkg.runtime.RawExtension", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1")

func names(list ...string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, name := range list {
		out[name] = true
	}
	return out
}
