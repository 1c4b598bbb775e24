package aggregation

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/admission/lookup"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/registry/registrytest"
	"kctl/apiserver/internal/request"
	"kctl/proto/core"
)

// TestServices: the address of a service, or the condition of its APIService if
// it has none.
func TestServices(t *testing.T) {
	service := func(address string) *corev1.Service {
		return &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: address, Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "x", Port: 443}}}}
	}
	slice := func(of, port string, ready *bool, addresses ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: of}},
			Ports:      []discoveryv1.EndpointPort{{Name: new(port), Port: new(int32(8443))}},
		}
		for _, address := range addresses {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}})
		}
		return s
	}
	named := slice("named", "x", nil, "a.example.com")
	named.AddressType = discoveryv1.AddressTypeFQDN
	a := &Aggregator{
		services: lookup.New[*corev1.Service](registrytest.NewNamed(core.Services, map[string]core.Object{
			"normal": service("10.0.0.1"), "headless": service("None"), "bare": service("10.0.0.2"), "empty": service("10.0.0.3"),
			"unready": service("10.0.0.4"), "misnamed": service("10.0.0.5"), "named": service("10.0.0.6"),
			"outside": &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "outside.example.com"}},
		})),
		options: Options{EndpointSlices: registrytest.NewNamed(core.EndpointSlices, map[string]core.Object{
			"a": slice("normal", "x", nil, "10.1.0.1"), "b": slice("headless", "x", new(true), "fd00::1"), "c": slice("empty", "x", nil),
			"d": slice("unready", "x", new(false), "10.1.0.2"), "e": slice("misnamed", "y", nil, "10.1.0.3"), "f": named,
		})},
	}
	for _, c := range []struct {
		name            string
		port            int32
		cluster, direct string // addresses, or what the error says
		condition       string
	}{
		{"normal", 443, "10.0.0.1:443", "10.1.0.1:8443", ""},
		{"normal", 80, `no service port 80 found for service "normal"`, `no service port 80 found for service "normal"`,
			`ServicePortError: service/normal in "b" is not listening on port 80`},
		{"headless", 443, "[fd00::1]:8443", "[fd00::1]:8443", ""},
		{"bare", 443, "10.0.0.2:443", `service "bare": no endpoints available`, `EndpointsNotFound: cannot find endpointslices for service/bare in "b"`},
		{"empty", 443, "10.0.0.3:443", `service "empty": no endpoints available`,
			`MissingEndpoints: endpointslices for service/empty in "b" have no addresses with port name "x"`},
		{"unready", 443, "10.0.0.4:443", `service "unready": no endpoints available`,
			`MissingEndpoints: endpointslices for service/unready in "b" have no addresses with port name "x"`},
		{"misnamed", 443, "10.0.0.5:443", `service "misnamed": no endpoints available`,
			`MissingEndpoints: endpointslices for service/misnamed in "b" have no addresses with port name "x"`},
		{"named", 443, "10.0.0.6:443", `service "named": no endpoints available`,
			`MissingEndpoints: endpointslices for service/named in "b" have no addresses with port name "x"`},
		{"outside", 8443, "outside.example.com:8443", "outside.example.com:8443", ""},
		{"none", 443, `services "none" not found`, `services "none" not found`, `ServiceNotFound: service/none in "b" is not present`},
	} {
		to := serviceName{"b", c.name, c.port}
		for direct, want := range map[bool]string{false: c.cluster, true: c.direct} {
			a.options.ToEndpoints = direct
			got, err := a.resolve(t.Context(), to)
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s:%d, by endpoints %t: %s, want %s", c.name, c.port, direct, got, want)
			}
		}
		got := ""
		condition := a.checkService(t.Context(), to)
		if condition != nil {
			got = condition.Reason + ": " + condition.Message
		}
		if got != c.condition {
			t.Errorf("%s:%d: %s, want %s", c.name, c.port, got, c.condition)
		}
	}
}

// counted counts the objects that are decoded.
type counted struct {
	registry.Resource
	decoded int
}

func (c *counted) Decode(e registry.Encoded) (core.Object, error) {
	c.decoded++
	return c.Resource.Decode(e)
}

// TestEndpointsAreDecodedOnce: the slices of a service are decoded when they have changed, or another port is asked for.
func TestEndpointsAreDecodedOnce(t *testing.T) {
	slice := func(addresses ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: "far"}},
			Ports:      []discoveryv1.EndpointPort{{Name: new("x"), Port: new(int32(1))}, {Name: new("y"), Port: new(int32(2))}},
		}
		for _, address := range addresses {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
		}
		return s
	}
	stored := map[string]core.Object{"a": slice("10.1.0.1")}
	source := &counted{Resource: registrytest.NewNamed(core.EndpointSlices, stored)}
	a := &Aggregator{options: Options{EndpointSlices: source}}
	expect := func(port string, decoded int, addresses ...string) {
		t.Helper()
		for range 3 {
			found, err := a.endpoints(t.Context(), serviceName{"b", "far", 443}, port)
			if err != nil || !slices.Equal(found.addresses, addresses) || found.slices != len(stored) {
				t.Errorf("%+v %v, not %v", found, err, addresses)
			}
		}
		if source.decoded != decoded {
			t.Errorf("%d are decoded, not %d", source.decoded, decoded)
		}
	}
	expect("x", 1, "10.1.0.1:1")
	expect("y", 2, "10.1.0.1:2")
	delete(stored, "a")
	stored["b"] = slice("10.1.0.2", "10.1.0.3")
	expect("y", 3, "10.1.0.2:2", "10.1.0.3:2")
	delete(stored, "b")
	expect("y", 3)
}

func TestGroupVersionOf(t *testing.T) {
	for path, want := range map[string]string{
		"/apis/a.b/v1": "a.b/v1", "/apis/a.b/v1/": "a.b/v1", "/apis/a.b/v1/things/x": "a.b/v1",
		"/apis/a.b": "", "/apis/a.b/": "", "/apis//v1": "", "/api/v1/pods": "", "/openapi/v3/apis/a.b/v1": "", "": "",
	} {
		got := ""
		if gv, ok := groupVersionOf(path); ok {
			got = gv.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestIdentify(t *testing.T) {
	header := http.Header{}
	setUserHeaders(header, &request.User{
		Username: "jane", UID: "7", Groups: []string{"a", "b"},
		Extra: map[string]authenticationv1.ExtraValue{"example.com/k: %": {"1", "2"}},
	})
	var got strings.Builder
	if err := header.Write(&got); err != nil {
		t.Fatal(err)
	}
	const want = "X-Remote-Extra-Example.com%2fk%3a%20%25: 1\r\nX-Remote-Extra-Example.com%2fk%3a%20%25: 2\r\nX-Remote-Group: a\r\nX-Remote-Group: " +
		"b\r\nX-Remote-Uid: 7\r\nX-Remote-User: jane\r\n"
	if got.String() != want {
		t.Errorf("%q", got.String())
	}
}
