// Package probe runs the liveness, readiness and startup probes of containers
// and keeps their results.
//
// The way through the room: Manager.AddPod makes one worker for each probe of a
// pod's containers → a worker (worker.go: when to ask) → Prober.Probe (by exec,
// httpGet, tcpSocket or grpc: one file each) → the thresholds → results, which
// the kubelet reads (Ready, Started, Results) when Updates says that a pod has
// new ones.
//
// Pod workers add and remove pods; Changed announces new containers, so that
// none waits for a whole period before its first probe. The room never ends or
// starts a container and writes no status.
package probe
