// Package interpodaffinity is the plugin InterPodAffinity: pods that must, must
// not, would or would not be where certain other pods are, "where" being the
// same value of a label of the nodes. Rules of pods that already run count for
// the one that comes, too. The profile builds it; terms are parsed once, by
// framework.NewPodInfo.
package interpodaffinity
