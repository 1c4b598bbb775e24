package runtimeconfig

import (
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/core"
)

// userNamespace is the pod's own user namespace, with the host's ids for its
// users (KEP-127); nil for pods that use the host's.
func (m *Maker) userNamespace(pod *core.Pod, handler string) (*runtimeapi.UserNamespace, error) {
	if pod.Spec.HostUsers == nil || *pod.Spec.HostUsers {
		return nil, nil
	}
	switch {
	case pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC:
		return nil, errors.New("can't set `spec.hostUsers: false` together with hostNetwork, hostPID or hostIPC")
	case m.UserIDs == nil || len(m.Reported().GetRuntimeHandlers()) == 0:
		return nil, errors.New("can't set `spec.hostUsers: false`, runtime does not support user namespaces")
	case !m.handlerFeatures(handler).GetUserNamespaces():
		return nil, fmt.Errorf("can't set `spec.hostUsers: false`, RuntimeClass handler %q does not support user namespaces", handler)
	}
	first, count, err := m.UserIDs(pod.UID)
	if err != nil {
		return nil, err
	}
	ids := []*runtimeapi.IDMapping{{HostId: first, Length: count}}
	return &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}, nil
}
