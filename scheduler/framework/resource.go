package framework

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
)

// What a container without requests counts for when nodes are scored, so that
// such containers are spread, too. Filters count it as zero.
const (
	DefaultMilliCPURequest int64 = 100
	DefaultMemoryRequest   int64 = 200 << 20
)

// Resource is an amount of everything that pods ask for and nodes have.
// Values that do not fit are held at the largest int64.
type Resource struct {
	MilliCPU         int64
	Memory           int64
	EphemeralStorage int64
	AllowedPods      int64
	Scalar           map[corev1.ResourceName]int64 // extended resources, huge pages, attachable volumes
}

// NewResource reads a resource list.
func NewResource(list corev1.ResourceList) Resource {
	var r Resource
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			r.MilliCPU = milliValue(&quantity)
		case corev1.ResourceMemory:
			r.Memory = value(&quantity)
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = value(&quantity)
		case corev1.ResourcePods:
			r.AllowedPods = value(&quantity)
		default:
			if IsScalar(name) {
				r.setScalar(name, value(&quantity))
			}
		}
	}
	return r
}

// IsScalar reports whether the scheduler counts name: extended resources,
// huge pages and attachable volumes, but no unprefixed name it doesn't know.
func IsScalar(name corev1.ResourceName) bool {
	s := string(name)
	return strings.Contains(s, "/") ||
		strings.HasPrefix(s, corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(s, corev1.ResourceAttachableVolumesPrefix)
}

func (r *Resource) setScalar(name corev1.ResourceName, value int64) {
	if r.Scalar == nil {
		r.Scalar = map[corev1.ResourceName]int64{}
	}
	r.Scalar[name] = value
}

// Get is the amount of one resource.
func (r *Resource) Get(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return r.MilliCPU
	case corev1.ResourceMemory:
		return r.Memory
	case corev1.ResourceEphemeralStorage:
		return r.EphemeralStorage
	case corev1.ResourcePods:
		return r.AllowedPods
	}
	return r.Scalar[name]
}

func (r *Resource) add(other *Resource) {
	r.MilliCPU = AddCapped(r.MilliCPU, other.MilliCPU)
	r.Memory = AddCapped(r.Memory, other.Memory)
	r.EphemeralStorage = AddCapped(r.EphemeralStorage, other.EphemeralStorage)
	for name, value := range other.Scalar {
		r.setScalar(name, AddCapped(r.Scalar[name], value))
	}
}

// capped reports whether a value is at its maximum, so that additions can't be
// subtracted again.
func (r *Resource) capped() bool {
	if r.MilliCPU == maxInt64 || r.Memory == maxInt64 || r.EphemeralStorage == maxInt64 {
		return true
	}
	for _, value := range r.Scalar {
		if value == maxInt64 {
			return true
		}
	}
	return false
}

// subtract undoes add, where r is not capped.
func (r *Resource) subtract(other *Resource) {
	r.MilliCPU -= other.MilliCPU
	r.Memory -= other.Memory
	r.EphemeralStorage -= other.EphemeralStorage
	for name, value := range other.Scalar {
		if r.Scalar[name] -= value; r.Scalar[name] == 0 {
			delete(r.Scalar, name)
		}
	}
}

func (r *Resource) clone() Resource {
	c := *r
	if r.Scalar != nil {
		c.Scalar = make(map[corev1.ResourceName]int64, len(r.Scalar))
		maps.Copy(c.Scalar, r.Scalar)
	}
	return c
}

const maxInt64 = 1<<63 - 1

// value is an amount, capped at the maximum. A negative amount, which no API
// server should have stored, counts as zero: it must not make room on a node for
// others.
func value(q *apiresource.Quantity) int64 {
	if q.CmpInt64(maxInt64) >= 0 {
		return maxInt64
	}
	if q.Sign() < 0 {
		return 0
	}
	return q.Value()
}

func milliValue(q *apiresource.Quantity) int64 {
	if q.CmpInt64(maxInt64/1000) >= 0 {
		return maxInt64
	}
	if q.Sign() < 0 {
		return 0
	}
	return q.MilliValue()
}

// AddCapped adds without wrapping around: absurdly large requests must stay
// larger than any node.
func AddCapped(a, b int64) int64 {
	if b > 0 && a > maxInt64-b {
		return maxInt64
	}
	return a + b
}
