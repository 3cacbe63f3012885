package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"

	"bronzeward/renderer-worker/internal/render"
	"bronzeward/renderer-worker/internal/wire"
)

// places renders fields as document/steps:placement, sorted.
func places(fields []*wire.SecretField) string {
	var out []string

	for _, field := range fields {
		at := fmt.Sprint(field.GetDocument())

		for _, step := range field.GetSteps() {
			switch step := step.GetStep().(type) {
			case *wire.Step_Key:
				at += "/" + step.Key
			case *wire.Step_Index:
				at += fmt.Sprintf("/%d", step.Index)
			}
		}

		out = append(out, at+":"+field.GetPlacement().String())
	}

	slices.Sort(out)

	return strings.Join(out, " ")
}

func listed(t *testing.T, kind wire.Source, text string) string {
	t.Helper()

	fields, err := render.SecretFields(kind, text)
	if err != nil {
		t.Fatalf("refused: %v (%s)", err, message(err))
	}

	return places(fields)
}

func TestTheSecretFieldsOfAGeneratedControlPlaneAreItsNine(t *testing.T) {
	want := strings.Join([]string{
		"0/cluster/aggregatorCA/key:PLACEMENT_BASE64",
		"0/cluster/ca/key:PLACEMENT_BASE64",
		"0/cluster/etcd/ca/key:PLACEMENT_BASE64",
		"0/cluster/secret:PLACEMENT_TEXT",
		"0/cluster/secretboxEncryptionSecret:PLACEMENT_TEXT",
		"0/cluster/serviceAccount/key:PLACEMENT_BASE64",
		"0/cluster/token:PLACEMENT_TEXT",
		"0/machine/ca/key:PLACEMENT_BASE64",
		"0/machine/token:PLACEMENT_TEXT",
	}, " ")

	if got := listed(t, wire.Source_SOURCE_BASE, generated(t, machine.TypeControlPlane, encoder.CommentsAll)); got != want {
		t.Fatalf("%s", got)
	}

	if got := listed(t, wire.Source_SOURCE_BASE, generated(t, machine.TypeWorker, encoder.CommentsDisabled)); got !=
		"0/cluster/secret:PLACEMENT_TEXT 0/cluster/token:PLACEMENT_TEXT 0/machine/token:PLACEMENT_TEXT" {
		t.Fatalf("%s", got)
	}
}

// everyField holds each path of the facts' table 6.1, its documents out of the order
// in which the machinery keeps them.
const everyField = `apiVersion: v1alpha1
kind: SideroLinkConfig
apiUrl: https://link.example.test/?jointoken=s&other=1
uniqueToken: s
---
---
apiVersion: v1alpha1
kind: WireguardConfig
name: wg0
privateKey: GDXBh9ZkgZ3qb8rVpXaYv4mQ7sJt2nLw1cKf5eHxRkU=
listenPort: 1
peers:
  - publicKey: GDXBh9ZkgZ3qb8rVpXaYv4mQ7sJt2nLw1cKf5eHxRkU=
    presharedKey: GDXBh9ZkgZ3qb8rVpXaYv4mQ7sJt2nLw1cKf5eHxRkU=
    allowedIPs: []
---
version: v1alpha1
machine:
  token: s
  ca: {crt: Yw==, key: cw==}
  registries:
    config:
      a.example.test:
        auth: {username: u, password: s, auth: s, identityToken: s}
        tls:
          clientIdentity: {crt: Yw==, key: cw==}
  network:
    interfaces:
      - interface: eth0
        wireguard: {privateKey: s}
        vip: {ip: 10.0.0.1, equinixMetal: {apiToken: s}, hcloud: {apiToken: s}}
        vlans:
          - vlanId: 1
            vip: {ip: 10.0.0.1, equinixMetal: {apiToken: s}, hcloud: {apiToken: s}}
  systemDiskEncryption:
    state:
      provider: luks2
      keys: [{slot: 0, static: {passphrase: s}}]
    ephemeral:
      provider: luks2
      keys: [{slot: 0, static: {passphrase: s}}]
cluster:
  secret: s
  token: s
  aescbcEncryptionSecret: s
  secretboxEncryptionSecret: s
  serviceAccount: {key: cw==}
  ca: {crt: Yw==, key: cw==}
  aggregatorCA: {crt: Yw==, key: cw==}
  etcd:
    ca: {crt: Yw==, key: cw==}
---
apiVersion: v1alpha1
kind: HCloudVIPConfig
name: 10.0.0.2
link: eth0
apiToken: s
---
apiVersion: v1alpha1
kind: VolumeConfig
name: STATE
encryption:
  provider: luks2
  keys: [{slot: 0, static: {passphrase: s}}]
---
apiVersion: v1alpha1
kind: RegistryTLSConfig
name: b.example.test
clientIdentity: {cert: c, key: s}
---
apiVersion: v1alpha1
kind: RegistryAuthConfig
name: b.example.test
username: u
password: s
auth: s
identityToken: s
`

func TestEveryFieldTheMachineryRedactsIsListedAtItsPlaceInTheText(t *testing.T) {
	want := []string{
		"0/apiUrl:PLACEMENT_URL", "0/uniqueToken:PLACEMENT_TEXT",
		"2/peers/0/presharedKey:PLACEMENT_TEXT", "2/privateKey:PLACEMENT_TEXT",
		"3/machine/token:PLACEMENT_TEXT", "3/machine/ca/key:PLACEMENT_BASE64",
		"3/machine/registries/config/a.example.test/auth/password:PLACEMENT_TEXT",
		"3/machine/registries/config/a.example.test/auth/auth:PLACEMENT_TEXT",
		"3/machine/registries/config/a.example.test/auth/identityToken:PLACEMENT_TEXT",
		"3/machine/registries/config/a.example.test/tls/clientIdentity/key:PLACEMENT_BASE64",
		"3/machine/network/interfaces/0/wireguard/privateKey:PLACEMENT_TEXT",
		"3/machine/network/interfaces/0/vip/equinixMetal/apiToken:PLACEMENT_TEXT",
		"3/machine/network/interfaces/0/vip/hcloud/apiToken:PLACEMENT_TEXT",
		"3/machine/network/interfaces/0/vlans/0/vip/equinixMetal/apiToken:PLACEMENT_TEXT",
		"3/machine/network/interfaces/0/vlans/0/vip/hcloud/apiToken:PLACEMENT_TEXT",
		"3/machine/systemDiskEncryption/state/keys/0/static/passphrase:PLACEMENT_TEXT",
		"3/machine/systemDiskEncryption/ephemeral/keys/0/static/passphrase:PLACEMENT_TEXT",
		"3/cluster/secret:PLACEMENT_TEXT", "3/cluster/token:PLACEMENT_TEXT",
		"3/cluster/aescbcEncryptionSecret:PLACEMENT_TEXT", "3/cluster/secretboxEncryptionSecret:PLACEMENT_TEXT",
		"3/cluster/serviceAccount/key:PLACEMENT_BASE64", "3/cluster/ca/key:PLACEMENT_BASE64",
		"3/cluster/aggregatorCA/key:PLACEMENT_BASE64", "3/cluster/etcd/ca/key:PLACEMENT_BASE64",
		"4/apiToken:PLACEMENT_TEXT",
		"5/encryption/keys/0/static/passphrase:PLACEMENT_TEXT",
		"6/clientIdentity/key:PLACEMENT_TEXT",
		"7/password:PLACEMENT_TEXT", "7/auth:PLACEMENT_TEXT", "7/identityToken:PLACEMENT_TEXT",
	}
	slices.Sort(want)

	for _, kind := range []wire.Source{wire.Source_SOURCE_BASE, wire.Source_SOURCE_FRAGMENT} {
		if got := listed(t, kind, everyField); got != strings.Join(want, " ") {
			t.Fatalf("%s", strings.ReplaceAll(got, " ", "\n"))
		}
	}
}

func TestASecretIsFoundThroughAnAliasAndNoMergeLoadsAroundOne(t *testing.T) {
	text := `machine:
  registries:
    config:
      a: &shared
        auth: {username: u, password: s}
      b: *shared
`
	want := "0/machine/registries/config/a/auth/password:PLACEMENT_TEXT " +
		"0/machine/registries/config/b/auth/password:PLACEMENT_TEXT"

	if got := listed(t, wire.Source_SOURCE_FRAGMENT, text); got != want {
		t.Fatalf("%s", got)
	}

	_, err := render.SecretFields(wire.Source_SOURCE_FRAGMENT, text+"      c:\n        <<: *shared\n")
	expect(t, wire.Class_CLASS_LOAD, err)
}

func TestAReferenceIsReadAsANullAndIsNoSecretField(t *testing.T) {
	text := "machine:\n  token: !bwref a/b\n  registries:\n    config:\n      a:\n        auth: !bwref a/c\n      b:\n        auth: {password: s}\n"
	if got := listed(t, wire.Source_SOURCE_FRAGMENT, text); got != "0/machine/registries/config/b/auth/password:PLACEMENT_TEXT" {
		t.Fatalf("%s", got)
	}
}

func TestDeletesTakeNoDocumentAwayFromTheList(t *testing.T) {
	text := "apiVersion: v1alpha1\nkind: SideroLinkConfig\n$patch: delete\n---\n" +
		"machine:\n  install:\n    $patch: delete\n---\n" +
		"apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: https://a.example.test/\nuniqueToken: s\n---\n" +
		"machine:\n  token: s\n"
	if got := listed(t, wire.Source_SOURCE_FRAGMENT, text); got != "2/uniqueToken:PLACEMENT_TEXT 3/machine/token:PLACEMENT_TEXT" {
		t.Fatalf("%s", got)
	}
}
