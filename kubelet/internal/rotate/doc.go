// Package rotate keeps the logs of running containers small: a log that has
// grown past its bound is moved aside, the runtime is told to begin a new one,
// and the oldest of those moved aside go (KubeletConfiguration v1beta1,
// containerLogMaxSize, containerLogMaxFiles).
//
// The kubelet runs it beside its other loops. Those who follow a log notice
// that it was moved (room logs); what containers leave behind when they end is
// taken away by the room collect.
package rotate
