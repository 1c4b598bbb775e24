package bootstrap

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// DefaultGroup is the group of joining machines, under kubeadm's name.
const DefaultGroup = core.GroupBootstrappers + ":kubeadm:default-node-token"

// Usages are what tokens can be used for.
var Usages = []string{core.BootstrapUsageSigning, core.BootstrapUsageAuthentication}

// Token is a bootstrap token.
type Token struct {
	ID          string    `json:"id"`
	Secret      string    `json:"-"`
	Expires     time.Time `json:"expires,omitzero"` // zero for never
	Usages      []string  `json:"usages,omitempty"`
	Groups      []string  `json:"groups,omitempty"`
	Description string    `json:"description,omitempty"`
}

// String is the token itself: a secret.
func (t *Token) String() string { return t.ID + "." + t.Secret }

// ParseToken reads a token as people give it. Errors don't show it.
func ParseToken(text string) (*Token, error) {
	id, secret, ok := core.SplitBootstrapToken(text)
	if !ok {
		return nil, errors.New("the token is not of the form [a-z0-9]{6}.[a-z0-9]{16}")
	}
	return &Token{ID: id, Secret: secret}, nil
}

// TokenID is the id in a token, or the id itself.
func TokenID(text string) (string, error) {
	if core.IsBootstrapTokenID(text) {
		return text, nil
	}
	token, err := ParseToken(text)
	if err != nil {
		return "", fmt.Errorf("specify the token, or its id (the six characters before the dot): %w", err)
	}
	return token.ID, nil
}

// NewToken makes a random one.
func NewToken() *Token {
	text := func(length int) string {
		const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
		out := make([]byte, 0, length)
		for random := make([]byte, 1); len(out) < length; {
			_, _ = rand.Read(random) // never fails
			// Values past the last multiple would make the first letters likelier.
			if n := int(random[0]); n < 256/len(letters)*len(letters) {
				out = append(out, letters[n%len(letters)])
			}
		}
		return string(out)
	}
	return &Token{ID: text(6), Secret: text(16)}
}

// Validate checks what the flags say about a token.
func (t *Token) Validate() error {
	for _, usage := range t.Usages {
		if !slices.Contains(Usages, usage) {
			return fmt.Errorf("--usages: %q is not one of %s", usage, strings.Join(Usages, ", "))
		}
	}
	for _, group := range t.Groups {
		if !core.IsBootstrapGroup(group) {
			return fmt.Errorf("--groups: %q is not of the form system:bootstrappers:NAME", group)
		}
	}
	if len(t.Groups) > 0 && !slices.Contains(t.Usages, core.BootstrapUsageAuthentication) {
		return errors.New("--groups requires the usage authentication")
	}
	return nil
}

// SecretName is the name of the secret that holds the token with this id.
func SecretName(id string) string { return core.BootstrapTokenSecretPrefix + id }

// Object is the secret that holds the token.
func (t *Token) Object() *core.Secret {
	s := &core.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: SecretName(t.ID), Namespace: core.NamespaceSystem},
		Type:       corev1.SecretTypeBootstrapToken,
		Data:       map[string][]byte{core.BootstrapTokenID: []byte(t.ID), core.BootstrapTokenSecret: []byte(t.Secret)},
	}
	for _, usage := range t.Usages {
		s.Data[core.BootstrapTokenUsagePrefix+usage] = []byte("true")
	}
	for key, value := range map[string]string{core.BootstrapTokenDescription: t.Description,
		core.BootstrapTokenGroups: strings.Join(t.Groups, ",")} {
		if value != "" {
			s.Data[key] = []byte(value)
		}
	}
	if !t.Expires.IsZero() {
		s.Data[core.BootstrapTokenExpiration] = []byte(t.Expires.UTC().Format(time.RFC3339))
	}
	return s
}

// TokenOf reads a secret that holds a token.
func TokenOf(s *core.Secret) (*Token, error) {
	id, secret := string(s.Data[core.BootstrapTokenID]), string(s.Data[core.BootstrapTokenSecret])
	t, err := ParseToken(id + "." + secret)
	if err != nil || s.Name != SecretName(id) {
		return nil, fmt.Errorf("secret %s/%s: it is not a bootstrap token", s.Namespace, s.Name)
	}
	if t.Expires, _, err = core.BootstrapTokenExpiry(s); err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", s.Namespace, s.Name, err)
	}
	t.Description = string(s.Data[core.BootstrapTokenDescription])
	for _, usage := range Usages {
		if string(s.Data[core.BootstrapTokenUsagePrefix+usage]) == "true" {
			t.Usages = append(t.Usages, usage)
		}
	}
	for group := range strings.SplitSeq(string(s.Data[core.BootstrapTokenGroups]), ",") {
		if group = strings.TrimSpace(group); group != "" {
			t.Groups = append(t.Groups, group)
		}
	}
	return t, nil
}
