package storage

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kctl/apiserver/internal/resources/check"
)

// topologyWarnings warns about deprecated node labels.
func topologyWarnings(terms []corev1.TopologySelectorTerm) []string {
	var out []string
	for i, term := range terms {
		for j, e := range term.MatchLabelExpressions {
			if text := check.NodeLabelWarning(e.Key); text != "" {
				out = append(out, fmt.Sprintf("allowedTopologies[%d].matchLabelExpressions[%d].key: %s", i, j, text))
			}
		}
	}
	return out
}

func capacityWarnings(c *storagev1.CSIStorageCapacity) []string {
	if c.NodeTopology == nil {
		return nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(c.NodeTopology.MatchLabels)) {
		if text := check.NodeLabelWarning(key); text != "" {
			out = append(out, fmt.Sprintf("nodeTopology.matchLabels.%s: %s", key, text))
		}
	}
	for i, e := range c.NodeTopology.MatchExpressions {
		if text := check.NodeLabelWarning(e.Key); text != "" {
			out = append(out, fmt.Sprintf("nodeTopology.matchExpressions[%d].key: %s is %s", i, e.Key, text))
		}
	}
	return out
}
