package core

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The types that pods pass through on their way. What only one program needs
// is imported from k8s.io/api by that program.
type (
	Pod             = corev1.Pod
	PodSpec         = corev1.PodSpec
	PodStatus       = corev1.PodStatus
	PodCondition    = corev1.PodCondition
	Container       = corev1.Container
	ContainerStatus = corev1.ContainerStatus
	Binding         = corev1.Binding
	Node            = corev1.Node
	Namespace       = corev1.Namespace
	Event           = corev1.Event
	ConfigMap       = corev1.ConfigMap
	Secret          = corev1.Secret
	ServiceAccount  = corev1.ServiceAccount
	ObjectReference = corev1.ObjectReference
	Lease           = coordinationv1.Lease
)

// Object is an API object: it has a kind and it has metadata. All pointers to
// the types above are Objects.
type Object interface {
	runtime.Object
	metav1.Object
}
