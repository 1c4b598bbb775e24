// Package podruntime brings one pod's sandbox and containers to what its spec
// asks for, over a CRI v1 runtime, and tells what the runtime has.
//
// The way through the room is: PodStatus (what is there) → computePodActions
// (a pure function: what to do) → Manager.SyncPod (doing it) or
// Manager.KillPod (ending it). The rest are the parts that these need: sandbox
// and container configuration, environment, hooks, termination messages.
//
// Pod workers call SyncPod and KillPod, one call at a time for one pod; the
// lifecycle event generator calls Pods and PodStatus; the garbage collector
// uses the runtime directly. The room keeps no state about pods besides
// back-off counters: everything else is read from the runtime, so a kubelet
// that starts anew goes on where the last one ended.
//
// KillPod works from what runs alone where the pod itself is not known, and
// leaves the dead containers for PodStatus to be asked how they ended; RemovePod
// then takes them away.
//
// The files in the order of a pod's way: query.go (what is there), actions.go
// (what to do), sync.go (doing it, step by step), newsandbox.go and start.go (the
// sandbox, and one container from its image to running), kill.go (the end).
//
// It never talks to the API server, mounts no volume, runs no probe and
// decides no pod phase.
package podruntime
