package abac

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

const (
	apiVersion = "abac.authorization.kubernetes.io/v1beta1"
	kind       = "Policy"
	// maxLine bounds the length of a policy.
	maxLine  = 1 << 20
	wildcard = "*"
)

// policy is one line of the file.
type policy struct {
	metav1.TypeMeta `json:",inline"`
	Spec            spec `json:"spec"`
}

// spec: an empty field means nothing, "*" everything. A user or group of "*"
// means any authenticated user, and is stored as that here.
type spec struct {
	User            string `json:"user,omitempty"`
	Group           string `json:"group,omitempty"`
	Readonly        bool   `json:"readonly,omitempty"`
	APIGroup        string `json:"apiGroup,omitempty"`
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	NonResourcePath string `json:"nonResourcePath,omitempty"`
}

// unversioned is a line of the format before v1beta1.
type unversioned struct {
	metav1.TypeMeta `json:",inline"`
	User            string `json:"user,omitempty"`
	Group           string `json:"group,omitempty"`
	Readonly        bool   `json:"readonly,omitempty"`
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
}

// Load reads a policy file.
func Load(path string) (*Authorizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("authorization policy file: %w", err)
	}
	defer f.Close()
	policies, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("authorization policy file %s: %w", path, err)
	}
	return &Authorizer{policies}, nil
}

// read skips empty lines and comments.
func read(r io.Reader) ([]spec, error) {
	var policies []spec
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		p, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		policies = append(policies, p)
	}
	return policies, lines.Err()
}

func parse(line []byte) (spec, error) {
	var kinds metav1.TypeMeta
	if err := json.Unmarshal(line, &kinds); err != nil {
		return spec{}, err
	}
	p, err := spec{}, error(nil)
	if kinds.APIVersion == "" {
		p, err = parseUnversioned(line)
	} else {
		p, err = parseVersioned(line)
	}
	if p.User == wildcard || p.Group == wildcard {
		p.User, p.Group = "", core.GroupAuthenticated
	}
	return p, err
}

func parseVersioned(line []byte) (spec, error) {
	var p policy
	if err := core.DecodeStrict(line, &p); err != nil {
		return spec{}, err
	}
	if p.APIVersion != apiVersion || p.Kind != kind {
		return spec{}, fmt.Errorf("apiVersion %q, kind %q: only %s, %s is supported", p.APIVersion, p.Kind, apiVersion, kind)
	}
	return p.Spec, nil
}

// parseUnversioned reads a line of the format before v1beta1. What it omits means
// any authenticated user, all namespaces and all resources; if it names neither of
// the last two, all paths as well.
func parseUnversioned(line []byte) (spec, error) {
	var p unversioned
	if err := core.DecodeStrict(line, &p); err != nil {
		return spec{}, err
	}
	out := spec{
		User: p.User, Group: p.Group, Readonly: p.Readonly, APIGroup: wildcard,
		Resource: cmp.Or(p.Resource, wildcard), Namespace: cmp.Or(p.Namespace, wildcard),
	}
	if p.User == "" && p.Group == "" {
		out.Group = wildcard
	}
	if p.Resource == "" && p.Namespace == "" {
		out.NonResourcePath = wildcard
	}
	return out, nil
}
