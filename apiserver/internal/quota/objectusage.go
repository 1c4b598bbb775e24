package quota

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"kctl/proto/core"
)

const (
	countPrefix     = "count/"
	requestsPrefix  = "requests."
	limitsPrefix    = "limits."
	hugePagesPrefix = "hugepages-"
	classInfix      = ".storageclass.storage.k8s.io/"
	deviceSuffix    = ".deviceclass.resource.k8s.io/devices"
)

var (
	pods     = schema.GroupResource{Resource: "pods"}
	services = schema.GroupResource{Resource: "services"}
	claims   = schema.GroupResource{Resource: "persistentvolumeclaims"}

	deviceClaims = schema.GroupResource{Group: resourcev1.GroupName, Resource: "resourceclaims"}

	// countedByName are the older resources that are counted under their bare names.
	countedByName = []string{"configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"}

	one = resource.MustParse("1")
)

// resourceCountedBy is the resource whose objects use what a quota names; ok is false for
// what is not counted here.
func resourceCountedBy(name corev1.ResourceName) (of schema.GroupResource, ok bool) {
	text := string(name)
	switch {
	case strings.HasPrefix(text, countPrefix):
		return schema.ParseGroupResource(strings.TrimPrefix(text, countPrefix)), true
	case slices.Contains(countedByName, text):
		return schema.GroupResource{Resource: text}, true
	case name == corev1.ResourceServicesNodePorts, name == corev1.ResourceServicesLoadBalancers:
		return services, true
	case name == corev1.ResourceRequestsStorage, strings.Contains(text, classInfix):
		return claims, true
	case strings.HasSuffix(text, deviceSuffix):
		return deviceClaims, true
	}
	switch name {
	case corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return pods, true
	}
	return pods, strings.HasPrefix(text, requestsPrefix) || strings.HasPrefix(text, limitsPrefix) || strings.HasPrefix(text, hugePagesPrefix)
}

// usageOf is what obj uses of everything that a quota can name.
func usageOf(of schema.GroupResource, obj core.Object, now time.Time) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceName(countPrefix + of.String()): one}
	if of.Group == "" && slices.Contains(countedByName, of.Resource) {
		list[corev1.ResourceName(of.Resource)] = one
	}
	switch o := obj.(type) {
	case *core.Pod:
		addPodUsage(list, o, now)
	case *corev1.Service:
		addServiceUsage(list, &o.Spec)
	case *corev1.PersistentVolumeClaim:
		addClaimUsage(list, o)
	case *resourcev1.ResourceClaim:
		addDeviceUsage(list, &o.Spec.Devices)
	}
	return list
}

func addPodUsage(list corev1.ResourceList, pod *core.Pod, now time.Time) {
	if hasEnded(pod, now) {
		return
	}
	list[corev1.ResourcePods] = one
	requests, limits := podAmounts(pod)
	for name, amount := range requests {
		list[requestsPrefix+name] = amount
		switch {
		case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
			strings.HasPrefix(string(name), hugePagesPrefix):
			list[name] = amount
		}
	}
	for name, amount := range limits {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			list[limitsPrefix+name] = amount
		}
	}
}

// podAmounts are a pod's requests and limits. One that is being made smaller uses what it has
// until its kubelet has taken that away, which it may refuse to do.
func podAmounts(pod *core.Pod) (requests, limits corev1.ResourceList) {
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	requests, limits = resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options)
	// What the status has of the pod as a whole includes its overhead, which PodRequests would
	// add once more.
	if has := pod.Status.Resources; has != nil && resourcehelper.IsPodLevelResourcesSet(pod) {
		raise(requests, pod.Status.AllocatedResources)
		raise(requests, has.Requests)
		raise(limits, has.Limits)
	}
	return requests, limits
}

// raise makes each amount of list at least that of least.
func raise(list, least corev1.ResourceList) {
	for name, amount := range least {
		if have, ok := list[name]; !ok || have.Cmp(amount) < 0 {
			list[name] = amount.DeepCopy()
		}
	}
}

// hasEnded reports whether the pod has ended, or should have by now: pods of a lost
// node do not count for ever.
func hasEnded(pod *core.Pod, now time.Time) bool {
	if core.Ended(pod.Status.Phase) {
		return true
	}
	// deletionTimestamp is when the pod was to be gone: it gets the same time again.
	return pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil &&
		now.After(pod.DeletionTimestamp.Add(core.Seconds(*pod.DeletionGracePeriodSeconds)))
}

func addServiceUsage(list corev1.ResourceList, spec *corev1.ServiceSpec) {
	ports := int64(len(spec.Ports))
	switch spec.Type {
	case corev1.ServiceTypeNodePort:
	case corev1.ServiceTypeLoadBalancer:
		list[corev1.ResourceServicesLoadBalancers] = one
		if ptr.Deref(spec.AllocateLoadBalancerNodePorts, true) {
			break
		}
		ports = 0
		for _, port := range spec.Ports {
			if port.NodePort != 0 {
				ports++
			}
		}
	default:
		return
	}
	list[corev1.ResourceServicesNodePorts] = *resource.NewQuantity(ports, resource.DecimalSI)
}

func addClaimUsage(list corev1.ResourceList, claim *corev1.PersistentVolumeClaim) {
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	} else if old, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = old
	}
	if class != "" {
		list[corev1.ResourceName(class+classInfix)+corev1.ResourcePersistentVolumeClaims] = one
	}
	asked, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return
	}
	// A volume that is being shrunk still has its old size.
	if has, ok := claim.Status.AllocatedResources[corev1.ResourceStorage]; ok && has.Cmp(asked) > 0 {
		asked = has
	}
	list[corev1.ResourceRequestsStorage] = asked
	if class != "" {
		list[corev1.ResourceName(class+classInfix)+corev1.ResourceRequestsStorage] = asked
	}
}

// addDeviceUsage is the maximum number of devices of each class that a claim may be given.
func addDeviceUsage(list corev1.ResourceList, claim *resourcev1.DeviceClaim) {
	for _, request := range claim.Requests {
		if e := request.Exactly; e != nil {
			addAmounts(list, deviceAmount(e.DeviceClassName, e.AllocationMode, e.Count))
			continue
		}
		most := corev1.ResourceList{} // one of the alternatives is used
		for _, alternative := range request.FirstAvailable {
			raise(most, deviceAmount(alternative.DeviceClassName, alternative.AllocationMode, alternative.Count))
		}
		addAmounts(list, most)
	}
}

func deviceAmount(class string, mode resourcev1.DeviceAllocationMode, count int64) corev1.ResourceList {
	if mode == resourcev1.DeviceAllocationModeAll {
		count = resourcev1.AllocationResultsMaxSize
	}
	return corev1.ResourceList{corev1.ResourceName(class + deviceSuffix): *resource.NewQuantity(count, resource.DecimalSI)}
}
