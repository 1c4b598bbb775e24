// Package interpodaffinity is the plugin InterPodAffinity: pods that must, must
// not, prefer to or prefer not to be where certain other pods are, "where"
// meaning the same value of a node label. The rules of running pods apply to
// the new pod, too. The profile builds it; terms are parsed once, by
// framework.NewPodInfo.
package interpodaffinity
