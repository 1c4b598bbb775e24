package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/core"
)

// Credential is a credential for a registry, with its owner: a pod's secret or service
// account, or, without either, the node, for all its pods.
type Credential struct {
	Auth            *runtimeapi.AuthConfig
	Secret, Account *Owner
}

// Owner is the object that a credential is from.
type Owner struct{ UID, Namespace, Name string }

// Hash distinguishes credentials without revealing them. It is upstream's, so that
// each kubelet understands the other's records.
func (p Credential) Hash() string {
	data, err := json.Marshal(struct {
		Username      string `json:"username,omitempty"`
		Password      string `json:"password,omitempty"`
		IdentityToken string `json:"identitytoken,omitempty"`
		RegistryToken string `json:"registrytoken,omitempty"`
	}{p.Auth.GetUsername(), p.Auth.GetPassword(), p.Auth.GetIdentityToken(), p.Auth.GetRegistryToken()})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func ownerOf(secret *core.Secret) *Owner {
	return &Owner{UID: string(secret.UID), Namespace: secret.Namespace, Name: secret.Name}
}
