// Package witness_test has upstream's own clients judge a cluster: client-go's
// informers and clientset, and kubectl, with no more than a kubeconfig.
package witness_test
