package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"kctl/kubelet/internal/node"
)

// network is the traffic of the interfaces of a pod, or of the machine; the first one is
// that of the default route.
type network struct {
	id         string                         // of the pod's sandbox
	pod        *runtimeapi.PodSandboxMetadata // nil for the machine
	at         time.Time
	interfaces []interfaceTraffic
}

// interfaceTraffic is the traffic of one interface; nil values were not measured.
type interfaceTraffic struct {
	name   string
	rx, tx counters
}

type counters struct{ bytes, packets, errors, dropped *uint64 }

func trafficOf(all []node.Interface) []interfaceTraffic {
	var of []interfaceTraffic
	for _, i := range all {
		of = append(of, interfaceTraffic{i.Name, counters{&i.RxBytes, &i.RxPackets, &i.RxErrors, &i.RxDropped},
			counters{&i.TxBytes, &i.TxPackets, &i.TxErrors, &i.TxDropped}})
	}
	return of
}

// podNetworks are the networks of pods that have their own. The kernel reports more
// than runtimes, some of which measure nothing, and while they are silent.
func (s *Server) podNetworks(ctx context.Context) []network {
	if s.Stats.Interfaces == nil {
		return s.measuredNetworks(ctx, nil)
	}
	var all []network
	told, missing := map[string]bool{}, false
	for _, pod := range s.Sandboxes() {
		for _, sandbox := range pod.Sandboxes {
			if !sandbox.Ready {
				continue
			}
			if of := s.Stats.Interfaces(pod.UID, sandbox.ID); of != nil {
				named := &runtimeapi.PodSandboxMetadata{Uid: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name}
				all = append(all, network{sandbox.ID, named, s.Clock.Now(), trafficOf(of)})
				told[sandbox.ID] = true
			} else {
				missing = true // it can't be measured here
			}
		}
	}
	if !missing {
		return all
	}
	return append(all, s.measuredNetworks(ctx, told)...)
}

// measuredNetworks are the runtime's figures, for the same sandboxes.
func (s *Server) measuredNetworks(ctx context.Context, but map[string]bool) (all []network) {
	sandboxes, _ := s.Runtime.ListPodSandboxStats(ctx, nil)
	for _, one := range sandboxes {
		id, n := one.GetAttributes().GetId(), one.GetLinux().GetNetwork()
		if n == nil || but[id] || !areNames(id, one.GetAttributes().GetMetadata().GetNamespace(), one.GetAttributes().GetMetadata().GetName()) {
			continue
		}
		of := network{id: id, pod: one.GetAttributes().GetMetadata(), at: time.Unix(0, n.GetTimestamp())}
		first := n.GetDefaultInterface().GetName()
		for _, u := range append([]*runtimeapi.NetworkInterfaceUsage{n.GetDefaultInterface()}, n.GetInterfaces()...) {
			if u != nil && areNames(u.GetName()) && (len(of.interfaces) == 0 || u.GetName() != first) {
				of.interfaces = append(of.interfaces, interfaceTraffic{
					u.GetName(), counters{bytes: value(u.GetRxBytes()), errors: value(u.GetRxErrors())},
					counters{bytes: value(u.GetTxBytes()), errors: value(u.GetTxErrors())},
				})
			}
		}
		all = append(all, of)
	}
	return all
}

// areNames says that what the runtime tells as names may be some: each would be in every line of
// an answer.
func areNames(told ...string) bool {
	return !slices.ContainsFunc(told, func(name string) bool { return len(name) > unix.NAME_MAX })
}

// stats is the form of the summary; nil without interfaces.
func (n network) stats() *stats.NetworkStats {
	if len(n.interfaces) == 0 {
		return nil
	}
	result := &stats.NetworkStats{Time: metav1.NewTime(n.at)}
	for _, i := range n.interfaces {
		result.Interfaces = append(result.Interfaces, stats.InterfaceStats{
			Name: i.name, RxBytes: i.rx.bytes, RxErrors: i.rx.errors, TxBytes: i.tx.bytes, TxErrors: i.tx.errors,
		})
	}
	result.InterfaceStats = result.Interfaces[0]
	return result
}

// addTo adds cAdvisor's metrics for it; of writes the labels.
func (n network) addTo(f samples, of func(more ...string) string) {
	for _, i := range n.interfaces {
		labels := of("interface", i.name)
		for way, d := range map[string]counters{"receive": i.rx, "transmit": i.tx} {
			for what, v := range map[string]*uint64{"bytes": d.bytes, "packets": d.packets, "errors": d.errors, "packets_dropped": d.dropped} {
				if v != nil {
					f.add("container_network_"+way+"_"+what+"_total", labels, fmt.Sprint(*v), n.at.UnixMilli())
				}
			}
		}
	}
}
