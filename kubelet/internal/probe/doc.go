// Package probe asks containers how they are, as their liveness, readiness and
// startup probes say, and keeps what came of it.
//
// The way through the room: Manager.AddPod makes one worker for each probe of a
// pod's containers → a worker (worker.go: when to ask) → Prober.Probe (by exec,
// httpGet, tcpSocket or grpc: one file each) → what the thresholds make of it →
// results, which the kubelet reads (Ready, Started, Results) when Updates tells
// that a pod has new ones.
//
// Pod workers add and remove pods; Changed tells the room of new containers, so
// that none waits for a period to pass before it is first asked. The room never
// ends or starts a container and writes no status.
package probe
