// Package witness_test has upstream's own clients judge a cluster: client-go's
// informers, clientset and election, and kubectl, the oldest and the newest at
// hand, and helm, with no more than a kubeconfig.
package witness_test

import "time"

// patience bounds a failing test, and no other.
const patience = time.Minute
