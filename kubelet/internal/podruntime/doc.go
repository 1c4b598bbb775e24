// Package podruntime brings one pod's sandbox and containers to what its spec
// asks for, over a CRI v1 runtime.
//
// The way through the room is: what is there (package runtimestate) → what to do
// (package podactions) → Manager.SyncPod (doing it) or Manager.KillPod (ending
// it). Package runtimeconfig makes the CRI configurations of sandboxes and
// containers, package hook runs the containers' hooks.
//
// Pod workers call SyncPod and KillPod, one call at a time for one pod. The room
// keeps no state about pods except back-off counters: everything else is read from
// the runtime, so a restarted kubelet goes on where the last one stopped.
//
// If the pod itself is unknown, KillPod works only from what runs. It leaves
// the dead containers, so that their ends can be read; RemovePod then removes
// them.
//
// The files in the order of a pod's way: sync.go (what was decided is done, step
// by step), newsandbox.go, start.go and container.go (the sandbox, and one container
// from its image to running), kill.go (the end).
//
// It never talks to the API server, mounts no volume, runs no probe and
// decides no pod phase.
package podruntime
