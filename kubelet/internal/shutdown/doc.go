// Package shutdown ends a node's pods in order when the machine is about to be
// shut down: it makes the system's shutdown wait (systemd-logind's delay
// inhibitor), and ends pods by priority, each group within its period (Kubernetes
// docs, "Node Shutdowns", "Graceful node shutdown").
//
// The kubelet runs it if its configuration asks for that, asks it whether to
// admit pods, and ends the pods for it. It never shuts anything down itself.
package shutdown
