// Package bootstraptoken knows the tokens by which new nodes join a cluster:
// secrets of type bootstrap.kubernetes.io/token in kube-system (Kubernetes
// docs, "Authenticating with Bootstrap Tokens").
//
// The authentication chain calls it, and the loop that removes tokens that have
// run out. It writes nothing, and no error of it shows a secret.
package bootstraptoken
