package delegatedauth

import (
	"bytes"
	"maps"
	"net/http"
	"testing"

	"kctl/proto/core"
	"kctl/proto/watch"
)

func TestLookUp(t *testing.T) {
	authority := newAuthority(t)
	there := published(map[string]string{keyClients: string(authority.Cert)})
	for name, test := range map[string]struct {
		api    api
		strict bool // whether a failure is not tolerated
		skip   bool
		err    bool
		want   int // for a client of the authority
	}{
		"there":                 {api: api{published: there}, strict: true, want: 200},
		"skipped":               {api: api{published: there}, strict: true, skip: true, want: 403}, // as without a certificate
		"not there":             {strict: true, want: 403},
		"may not":               {api: api{published: there, forbidden: true}, strict: true, err: true, want: 403},
		"may not, tolerated":    {api: api{published: there, forbidden: true}, want: 403},
		"no answer":             {api: api{broken: true}, strict: true, err: true, want: 500},
		"no answer, tolerated":  {api: api{broken: true}, want: 500},
		"unreadable":            {api: api{published: published(map[string]string{keyClients: "rubbish"})}, strict: true, err: true, want: 403},
		"unreadable, tolerated": {api: api{published: published(map[string]string{keyClients: "rubbish"})}, want: 403},
		"of proxies, unreadable": {api: api{published: published(map[string]string{keyProxies: string(authority.Cert), keyNames: "rubbish"})}, strict: true,
			err: true, want: 403},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, &test.api, func(o *Options) { o.TolerateLookupFailure, o.SkipLookup = !test.strict, test.skip })
			if err := s.guard.LookUp(t.Context()); (err != nil) != test.err {
				t.Errorf("error %v, want one: %v", err, test.err)
			}
			s.answered("a client", request(t, authority, "reader"), test.want)
		})
	}
}

// What the cluster publishes counts from then on, what can't be read changes nothing, and who
// deletes it locks nobody out.
func TestChangesOfTheConfigMap(t *testing.T) {
	clients, proxies, others := newAuthority(t), newAuthority(t), newAuthority(t)
	s := newScene(t, &api{}, nil)
	proxied := func() *http.Request {
		r := request(t, proxies, "front")
		r.Header.Set("X-Remote-User", "reader")
		return r
	}
	data := map[string]string{keyClients: string(clients.Cert), keyProxies: string(proxies.Cert), keyUsername: `["X-Remote-User"]`, keyNames: `["front"]`}
	with := func(key, value string) map[string]string {
		changed := maps.Clone(data)
		changed[key] = value
		return changed
	}
	for _, step := range []struct {
		name          string
		is            watch.Type
		data          map[string]string
		client, proxy int
		shown         int // how many authorities clients are told of
	}{
		{"clients alone", watch.Added, map[string]string{keyClients: string(clients.Cert)}, 200, 401, 1},
		{"all", watch.Modified, data, 200, 200, 2},
		{"other clients", watch.Modified, with(keyClients, string(others.Cert)), 401, 200, 2},
		{"clients that can't be read", watch.Modified, with(keyClients, "rubbish"), 401, 200, 2},
		{"clients again", watch.Modified, data, 200, 200, 2},
		{"another proxy's name", watch.Modified, with(keyNames, `["back"]`), 200, 401, 2},
		{"names that can't be read", watch.Modified, with(keyNames, `front`), 200, 401, 2},
		{"any name", watch.Modified, with(keyNames, `[]`), 200, 200, 2},
		{"another header", watch.Modified, with(keyUsername, `["X-User"]`), 200, 401, 2},
		{"another authority of proxies", watch.Modified, with(keyProxies, string(others.Cert)), 200, 401, 2},
		{"all again", watch.Modified, data, 200, 200, 2},
		{"nothing", watch.Modified, nil, 200, 200, 2},
		{"deleted", watch.Deleted, with(keyClients, string(others.Cert)), 200, 200, 2},
	} {
		s.guard.trust.Apply(step.is, published(step.data))
		s.answered(step.name+": a client", request(t, clients, "reader"), step.client)
		s.answered(step.name+": a proxy", proxied(), step.proxy)
		shown := 0
		for _, authorities := range s.guard.Authorities() {
			shown += bytes.Count(authorities(), []byte("BEGIN CERTIFICATE"))
		}
		if shown != step.shown {
			t.Errorf("%s: clients are asked for certificates of %d authorities, want %d", step.name, shown, step.shown)
		}
	}
	another := published(map[string]string{keyClients: string(others.Cert)})
	another.Name = "another"
	s.guard.trust.Replace([]*core.ConfigMap{another})
	s.answered("a ConfigMap of another name", request(t, others, "reader"), 401)
}
