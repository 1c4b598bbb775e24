package encrypt

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// configuration is an EncryptionConfiguration of apiserver.config.k8s.io/v1.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	Resources       []resourceConfiguration `json:"resources"`
}

type resourceConfiguration struct {
	Resources []string                `json:"resources"`
	Providers []providerConfiguration `json:"providers"`
}

// providerConfiguration has exactly one of its fields.
type providerConfiguration struct {
	AESGCM    *keys      `json:"aesgcm,omitempty"`
	AESCBC    *keys      `json:"aescbc,omitempty"`
	Secretbox *keys      `json:"secretbox,omitempty"`
	Identity  *struct{}  `json:"identity,omitempty"`
	KMS       *kmsConfig `json:"kms,omitempty"`
}

type keys struct {
	Keys []key `json:"keys"`
}

type key struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

type kmsConfig struct {
	APIVersion string           `json:"apiVersion,omitempty"`
	Name       string           `json:"name"`
	CacheSize  *int32           `json:"cachesize,omitempty"`
	Endpoint   string           `json:"endpoint"`
	Timeout    *metav1.Duration `json:"timeout,omitempty"`
}

const defaultKMSTimeout = 3 * time.Second

// parse checks a file's content.
func parse(file string, content []byte) (*configuration, error) {
	c := &configuration{}
	if err := yaml.UnmarshalStrict(content, c); err != nil {
		// The parser's error may quote a secret.
		return nil, fmt.Errorf("encryption configuration %s: not an EncryptionConfiguration: unknown, doubled or misplaced fields", file)
	}
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("encryption configuration %s: %w", file, err)
	}
	return c, nil
}

func (c *configuration) validate() error {
	if c.APIVersion != "apiserver.config.k8s.io/v1" || c.Kind != "EncryptionConfiguration" {
		return fmt.Errorf("is a %q of %q, only EncryptionConfiguration of apiserver.config.k8s.io/v1 is known", c.Kind, c.APIVersion)
	}
	if len(c.Resources) == 0 {
		return errors.New("resources: none is given")
	}
	var earlier []string
	kms := map[string]bool{}
	for i, r := range c.Resources {
		at := fmt.Sprintf("resources[%d]", i)
		if len(r.Resources) == 0 || len(r.Providers) == 0 {
			return fmt.Errorf("%s: needs resources and providers", at)
		}
		for i, name := range r.Resources {
			if err := checkResource(name); err != nil {
				return fmt.Errorf("%s.resources: %w", at, err)
			}
			if err := checkOverlap(name, r.Resources[:i], earlier); err != nil {
				return fmt.Errorf("%s.resources: %w", at, err)
			}
		}
		earlier = append(earlier, r.Resources...)
		for j, p := range r.Providers {
			if err := p.validate(kms); err != nil {
				return fmt.Errorf("%s.providers[%d]: %w", at, j, err)
			}
		}
	}
	return nil
}

// nonREST are the names of what the server stores for itself.
var nonREST = sets.New("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")

// checkResource refuses names without a meaning, by which nothing would be encrypted.
func checkResource(name string) error {
	resource, group, divided := strings.Cut(name, ".")
	switch {
	case nonREST.Has(name):
		return fmt.Errorf("%s: has no REST API and cannot be encrypted", name)
	case group == eventsv1.GroupName:
		return fmt.Errorf("%s: its objects are stored as events of the core group: use events", name)
	case group == "extensions":
		return fmt.Errorf("%s: the group extensions has been removed", name)
	case name == "*":
		return errors.New("*: use *.* for all resources, or *. for those of the core group")
	case resource == "" || strings.ToLower(name) != name:
		return fmt.Errorf("%q: not the plural name of a resource, as in secrets or deployments.apps", name)
	case strings.Contains(resource, "*") && resource != "*", strings.Contains(group, "*") && name != "*.*":
		return fmt.Errorf("%s: wildcards are *.*, *. and *.GROUP", name)
	case divided && group == "" && resource != "*":
		return fmt.Errorf("%s: a resource of the core group has no dot", name)
	}
	return nil
}

// checkOverlap refuses names that others of the same entry, or wildcards of earlier ones, cover. A
// name that several entries have gets the providers of all, in their order.
func checkOverlap(name string, beside, earlier []string) error {
	for _, other := range beside {
		switch {
		case other == name || covers(other, name):
			return fmt.Errorf("%s: the earlier %s leaves nothing to it", name, other)
		case covers(name, other):
			return fmt.Errorf("%s: covers %s of the same entry", name, other)
		}
	}
	for _, other := range earlier {
		if covers(other, name) {
			return fmt.Errorf("%s: the earlier %s leaves nothing to it", name, other)
		}
	}
	return nil
}

// covers reports whether a name in the configuration is a wildcard for another.
func covers(wildcard, name string) bool {
	_, group, _ := strings.Cut(name, ".")
	return wildcard == "*.*" || wildcard == "*."+group
}

func (p *providerConfiguration) validate(kmsNames map[string]bool) error {
	given := 0
	for _, set := range []bool{p.AESGCM != nil, p.AESCBC != nil, p.Secretbox != nil, p.Identity != nil, p.KMS != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		return errors.New("exactly one of aesgcm, aescbc, secretbox, kms and identity is needed")
	}
	switch {
	case p.AESGCM != nil:
		return p.AESGCM.validate("aesgcm", 16, 24, 32)
	case p.AESCBC != nil:
		return p.AESCBC.validate("aescbc", 16, 24, 32)
	case p.Secretbox != nil:
		return p.Secretbox.validate("secretbox", 32)
	case p.KMS != nil:
		return p.KMS.validate(kmsNames)
	}
	return nil
}

func (k *keys) validate(kind string, sizes ...int) error {
	if len(k.Keys) == 0 {
		return fmt.Errorf("%s.keys: none is given", kind)
	}
	for i, key := range k.Keys {
		at := fmt.Sprintf("%s.keys[%d]", kind, i)
		if key.Name == "" { // several may have one name: each is tried
			return fmt.Errorf("%s.name: must be given", at)
		}
		secret, err := base64.StdEncoding.DecodeString(key.Secret)
		if err != nil {
			return fmt.Errorf("%s.secret: not base64", at)
		}
		if !slices.Contains(sizes, len(secret)) {
			return fmt.Errorf("%s.secret: has %d bytes, must have one of %v", at, len(secret), sizes)
		}
	}
	return nil
}

func (k *kmsConfig) validate(names map[string]bool) error {
	switch {
	case k.APIVersion == "" || k.APIVersion == "v1":
		return errors.New("kms v1 is not supported (upstream has retired it): set apiVersion: v2")
	case k.APIVersion != "v2":
		return fmt.Errorf("kms.apiVersion: %q is unknown, only v2 is supported", k.APIVersion)
	case k.Name == "" || strings.Contains(k.Name, ":") || names[k.Name]:
		return errors.New("kms.name: must be given, without a colon, and once only")
	case k.CacheSize != nil:
		return errors.New("kms.cachesize: is of kms v1 only")
	case k.Timeout != nil && k.Timeout.Duration <= 0:
		return errors.New("kms.timeout: must be positive")
	}
	names[k.Name] = true
	if u, err := url.Parse(k.Endpoint); err != nil || u.Scheme != "unix" || u.Path == "" {
		return errors.New("kms.endpoint: must be of the form unix:///PATH")
	}
	return nil
}

func (k *kmsConfig) timeout() time.Duration {
	if k.Timeout == nil {
		return defaultKMSTimeout
	}
	return k.Timeout.Duration
}
