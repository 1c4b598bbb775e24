// Package bootstraptoken knows the tokens by which new nodes join a cluster:
// secrets of type bootstrap.kubernetes.io/token in kube-system (Kubernetes
// docs, "Authenticating with Bootstrap Tokens").
//
// The authentication chain calls it, and the loop that removes expired tokens.
// It writes nothing, and its errors show no secret.
package bootstraptoken
