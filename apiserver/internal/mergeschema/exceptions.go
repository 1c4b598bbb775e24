package mergeschema

import (
	"reflect"
	"strings"
)

// mergeRule is how a field is merged.
type mergeRule struct {
	Kind Kind
	Keys []string
}

// mergeRuleOf is how the field of a struct is merged. Mostly that follows from the
// tags for strategic merge patches: lists with a merge key are ListMap, others
// that are merged are ListSets, and those without tags are atomic. The table below
// has the differences of server-side apply.
func mergeRuleOf(in reflect.Type, field reflect.StructField, name string) mergeRule {
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
			return mergeRule{Kind: AtomicList}
		case key != "":
			return mergeRule{Kind: ListMap, Keys: []string{key}}
		}
		return mergeRule{Kind: ListSet}
	}
	return mergeRule{Kind: schemaOf(t).Kind}
}

// isAtomicStruct reports whether values of a type are replaced as a whole
// everywhere.
func isAtomicStruct(t reflect.Type) bool {
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

func listMapBy(names ...string) mergeRule { return mergeRule{Kind: ListMap, Keys: names} }

var (
	setRule        = mergeRule{Kind: ListSet}
	atomicListRule = mergeRule{Kind: AtomicList}
	atomicMapRule  = mergeRule{Kind: AtomicMap}
)

var exceptions = map[string]mergeRule{
	"admissionregistration.ValidatingAdmissionPolicyBindingSpec.validationActions": setRule,
	"admissionregistration.ValidatingAdmissionPolicyStatus.conditions":             listMapBy("type"),
	"apiextensions.CustomResourceDefinitionStatus.conditions":                      listMapBy("type"),
	"batch.JobStatus.conditions":                                                   atomicListRule,
	"batch.PodFailurePolicyOnExitCodesRequirement.values":                          setRule,
	"batch.UncountedTerminatedPods.failed":                                         setRule,
	"batch.UncountedTerminatedPods.succeeded":                                      setRule,
	"certificates.CertificateSigningRequestStatus.conditions":                      listMapBy("type"),
	"core.Container.ports":                                                         listMapBy("containerPort", "protocol"),
	"core.ContainerRestartRuleOnExitCodes.values":                                  setRule,
	"core.EphemeralContainerCommon.ports":                                          listMapBy("containerPort", "protocol"),
	"core.NodeAllocatableResourceClaimStatus.containers":                           setRule,
	"core.NodePodPreemptionPolicy.disableResizePreemption":                         setRule,
	"core.PersistentVolumeSpec.claimRef":                                           {Kind: Struct},
	"core.PodSpec.nodeSelector":                                                    atomicMapRule,
	"core.PodSpec.topologySpreadConstraints":                                       listMapBy("topologyKey", "whenUnsatisfiable"),
	"core.PodStatus.hostIPs":                                                       atomicListRule,
	"core.PodStatus.volumeHealth":                                                  listMapBy("name"),
	"core.PodVolumeHealth.healthConditions":                                        listMapBy("status", "reason"),
	"core.ReplicationControllerSpec.selector":                                      atomicMapRule,
	"core.ResourceRequirements.claims":                                             listMapBy("name"),
	"core.ResourceStatus.resources":                                                listMapBy("resourceID"),
	"core.ServiceSpec.ports":                                                       listMapBy("port", "protocol"),
	"core.ServiceSpec.selector":                                                    atomicMapRule,
	"core.VolumeHealthStatus.healthConditions":                                     listMapBy("status", "reason"),
	"core.VolumeMount.bindMountOptions":                                            setRule,
	"discovery.Endpoint.addresses":                                                 setRule,
	"flowcontrol.NonResourcePolicyRule.nonResourceURLs":                            setRule,
	"flowcontrol.NonResourcePolicyRule.verbs":                                      setRule,
	"flowcontrol.ResourcePolicyRule.apiGroups":                                     setRule,
	"flowcontrol.ResourcePolicyRule.namespaces":                                    setRule,
	"flowcontrol.ResourcePolicyRule.resources":                                     setRule,
	"flowcontrol.ResourcePolicyRule.verbs":                                         setRule,
	"node.Scheduling.nodeSelector":                                                 atomicMapRule,
	"resource.AllocatedDeviceStatus.conditions":                                    listMapBy("type"),
	"resource.DeviceRequestAllocationResult.skipNodeOperations":                    setRule,
	"resource.ResourceClaimStatus.devices":                                         listMapBy("driver", "device", "pool", "shareID"),
	"resource.ResourceSliceSpec.skipNodeOperations":                                setRule,
	"storage.CSIDriverSpec.volumeLifecycleModes":                                   setRule,
}

// keyDefaults are the API's defaults of list keys.
var keyDefaults = map[string]any{
	"core.ContainerPort.protocol":    "TCP",
	"core.LocalObjectReference.name": "",
	"core.ServicePort.protocol":      "TCP",
}

var atomicStructs = nameSet(
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

// atomicFields are fields that are replaced as a whole, whatever their type.
var atomicFields = nameSet("apps.ControllerRevision.data")

// untypedTypes are types with unknown fields.
var untypedTypes = nameSet("io.k8s.apimachinery.pkg.runtime.RawExtension", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1")

func nameSet(list ...string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, name := range list {
		out[name] = true
	}
	return out
}
