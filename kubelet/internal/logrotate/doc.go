// Package logrotate keeps the logs of running containers small: a log that has
// grown beyond its limit is moved aside, the runtime is told to begin a new
// one, and the oldest of those moved aside are removed (KubeletConfiguration
// v1beta1, containerLogMaxSize, containerLogMaxFiles).
//
// The kubelet runs it beside its other loops. Followers of a log notice that it
// was moved (package logs); package garbagecollector removes what containers leave
// behind when they end.
package logrotate
