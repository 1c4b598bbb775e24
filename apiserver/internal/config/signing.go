package config

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// ClusterSigning is the CA that signs certificates requested through the API.
// Without files, nothing is signed here.
type ClusterSigning struct {
	CertFile, KeyFile string
	Duration          time.Duration
}

const signingDuration = 365 * 24 * time.Hour

func (c *ClusterSigning) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.CertFile, "cluster-signing-cert-file", c.CertFile,
		"CA certificate that signs approved certificate signing requests for Kubernetes' own signers")
	fs.StringVar(&c.KeyFile, "cluster-signing-key-file", c.KeyFile, "key of --cluster-signing-cert-file")
	fs.DurationVar(&c.Duration, "cluster-signing-duration", c.Duration,
		"maximum lifetime of certificates signed with --cluster-signing-cert-file, and their lifetime if the request names none")
}

func (c *ClusterSigning) validate() error {
	if c.Duration <= 0 {
		return errors.New("--cluster-signing-duration: must be positive")
	}
	return together("--cluster-signing-cert-file", c.CertFile, "--cluster-signing-key-file", c.KeyFile)
}

// formerNames are former names of loops, which upstream still accepts.
var formerNames = map[string]string{
	"csrapproving":            "certificatesigningrequest-approving-controller",
	"csrsigning":              "certificatesigningrequest-signing-controller",
	"csrcleaner":              "certificatesigningrequest-cleaner-controller",
	"tokencleaner":            "token-cleaner-controller",
	"serviceaccount":          "serviceaccount-controller",
	"serviceaccount-token":    "serviceaccount-token-controller",
	"root-ca-cert-publisher":  "root-ca-certificate-publisher-controller",
	"namespace":               "namespace-controller",
	"nodelifecycle":           "node-lifecycle-controller",
	"nodeipam":                "node-ipam-controller",
	"podgc":                   "pod-garbage-collector-controller",
	"garbagecollector":        "garbage-collector-controller",
	"clusterrole-aggregation": "clusterrole-aggregation-controller",
	"persistentvolume-binder": "persistentvolume-binder-controller",
	"pvc-protection":          "persistentvolumeclaim-protection-controller",
	"pv-protection":           "persistentvolume-protection-controller",
}

// currentNames replaces former names of loops.
func currentNames(controllers []string) []string {
	out := make([]string, 0, len(controllers))
	for _, c := range controllers {
		name, off := strings.CutPrefix(c, "-")
		if current := formerNames[name]; current != "" {
			name = current
		}
		if off {
			name = "-" + name
		}
		out = append(out, name)
	}
	return out
}
