package check

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// newLabels are deprecated node labels, with upstream's warnings.
var newLabels = map[string]struct{ since, use string }{
	"beta.kubernetes.io/arch":             {"v1.14", corev1.LabelArchStable},
	"beta.kubernetes.io/os":               {"v1.14", corev1.LabelOSStable},
	corev1.LabelInstanceType:              {"v1.17", corev1.LabelInstanceTypeStable},
	corev1.LabelFailureDomainBetaZone:     {"v1.17", corev1.LabelTopologyZone},
	corev1.LabelFailureDomainBetaRegion:   {"v1.17", corev1.LabelTopologyRegion},
	"failure-domain.kubernetes.io/zone":   {"v1.17", corev1.LabelTopologyZone},
	"failure-domain.kubernetes.io/region": {"v1.17", corev1.LabelTopologyRegion},
}

// NodeLabelWarning is the warning for a deprecated node label, or "".
func NodeLabelWarning(key string) string {
	newer, old := newLabels[key]
	if !old {
		return ""
	}
	return fmt.Sprintf("deprecated since %s; use %q instead", newer.since, newer.use)
}

// VolumeWarnings are the warnings for removed kinds of volumes, by field name.
var VolumeWarnings = map[string]string{
	"photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
	"gitRepo":              "deprecated in v1.11, and disabled by default in v1.33+",
	"scaleIO":              "deprecated in v1.16, non-functional in v1.22+",
	"flocker":              "deprecated in v1.22, non-functional in v1.25+",
	"storageOS":            "deprecated in v1.22, non-functional in v1.25+",
	"quobyte":              "deprecated in v1.22, non-functional in v1.25+",
	"glusterfs":            "deprecated in v1.25, non-functional in v1.26+",
	"cephfs":               "deprecated in v1.28, non-functional in v1.31+",
	"rbd":                  "deprecated in v1.28, non-functional in v1.31+",
}
