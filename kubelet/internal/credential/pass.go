package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/core"
)

// Pass is whom a registry knows us as, and by whose leave: a pod's, by a secret or
// as a service account, or by neither the node's, for all of its pods.
type Pass struct {
	Auth            *runtimeapi.AuthConfig
	Secret, Account *Owner
}

// Owner is the object that a pass is from.
type Owner struct{ UID, Namespace, Name string }

// Hash tells passes apart without telling them. It is upstream's, so that one
// kubelet knows what the other has noted.
func (p Pass) Hash() string {
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
