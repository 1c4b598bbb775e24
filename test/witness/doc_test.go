// Package witness_test has upstream's own clients judge a cluster, with no more
// than a kubeconfig: client-go's informers, clientset and leader election,
// helm, and the oldest and the newest kubectl at hand.
package witness_test

import "time"

// patience only bounds failing tests.
const patience = time.Minute
