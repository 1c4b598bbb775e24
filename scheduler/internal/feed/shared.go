package feed

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// maxShared bounds what is kept to be shared; beyond it, sharing begins anew.
const maxShared = 4096

// shared has objects that say the same share the map that says it: of thousands
// of pods most come from a few templates, and decoded each would have its own.
// Nobody changes these maps. A nil *shared shares nothing; one belongs to one
// goroutine.
type shared struct {
	resources map[string]corev1.ResourceList
	labels    map[string]map[string]string
}

func newShared() *shared {
	return &shared{resources: map[string]corev1.ResourceList{}, labels: map[string]map[string]string{}}
}

// ofResources is list, or one that is equal to the letter.
func (s *shared) ofResources(list corev1.ResourceList) corev1.ResourceList {
	if s == nil || len(list) == 0 {
		return list
	}
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		key.WriteString(string(name) + "=" + quantity.String() + ",")
	}
	return share(s.resources, key.String(), list)
}

// ofLabels is set, or one that is equal.
func (s *shared) ofLabels(set map[string]string) map[string]string {
	if s == nil || len(set) == 0 {
		return set
	}
	return share(s.labels, labels.FormatLabels(set), set)
}

func share[M any](kept map[string]M, key string, m M) M {
	if known, ok := kept[key]; ok {
		return known
	}
	if len(kept) >= maxShared {
		clear(kept)
	}
	kept[key] = m
	return m
}
