package kubeconfig

// A kubeconfig's auth-provider "oidc" renews its tokens; those that client-go no longer has
// (gcp, azure) are refused with what to use instead.
import _ "k8s.io/client-go/plugin/pkg/client/auth"
