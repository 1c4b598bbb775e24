package serviceaccount

import (
	"github.com/golang-jwt/jwt/v5"
)

// claims are a token's content, in upstream's layout, so that its tokens are
// valid here and ours there.
type claims struct {
	jwt.RegisteredClaims
	Kubernetes kubernetesClaims `json:"kubernetes.io"`
}

type kubernetesClaims struct {
	Namespace      string           `json:"namespace,omitempty"`
	ServiceAccount reference        `json:"serviceaccount"`
	Pod            *reference       `json:"pod,omitempty"`
	Secret         *reference       `json:"secret,omitempty"`
	Node           *reference       `json:"node,omitempty"`
	WarnAfter      *jwt.NumericDate `json:"warnafter,omitempty"`
	// Tokens of upstream's alpha feature APIServerWebhookAuthenticationToken are bound to
	// these. They are not issued here, and not accepted.
	ValidatingWebhook *reference `json:"validatingwebhookconfiguration,omitempty"`
	MutatingWebhook   *reference `json:"mutatingwebhookconfiguration,omitempty"`
}

type reference struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// Keys of the user info's extra values, besides authn.ExtraNodeName.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
	extraNodeUID = "authentication.kubernetes.io/node-uid"
)
