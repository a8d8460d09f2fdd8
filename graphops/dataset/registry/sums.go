package registry

// Checksums. SHA-256 sums and sizes were computed from the files. For a file that was not
// available, the id of its content in the publisher's git repository replaces the sum. URLs of
// repositories name a commit, so that their content cannot change. Files without either come from
// servers that publish no checksums.

// The pinned commits.
const (
	planetoidURL     = "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/"
	heterophilousURL = "https://raw.githubusercontent.com/yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318/data/"
)

var planetoidSums = map[string]File{
	"ind.citeseer.x":          {Size: 31087, SHA256: "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6"},
	"ind.citeseer.y":          {Size: 3014, SHA256: "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924"},
	"ind.citeseer.tx":         {Size: 260321, SHA256: "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21"},
	"ind.citeseer.ty":         {Size: 24135, SHA256: "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce"},
	"ind.citeseer.allx":       {Size: 595021, SHA256: "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668"},
	"ind.citeseer.ally":       {Size: 55623, SHA256: "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95"},
	"ind.citeseer.graph":      {Size: 61987, SHA256: "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7"},
	"ind.citeseer.test.index": {Size: 5000, SHA256: "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4"},
	"ind.cora.x":              {Size: 22119, SHA256: "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"},
	"ind.cora.y":              {Size: 4054, SHA256: "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"},
	"ind.cora.tx":             {Size: 148025, SHA256: "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"},
	"ind.cora.ty":             {Size: 28135, SHA256: "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"},
	"ind.cora.allx":           {Size: 257305, SHA256: "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"},
	"ind.cora.ally":           {Size: 47959, SHA256: "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"},
	"ind.cora.graph":          {Size: 59847, SHA256: "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"},
	"ind.cora.test.index":     {Size: 5000, SHA256: "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"},
	"ind.pubmed.x":            {Size: 23172, SHA256: "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33"},
	"ind.pubmed.y":            {Size: 854, SHA256: "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3"},
	"ind.pubmed.tx":           {Size: 405505, SHA256: "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d"},
	"ind.pubmed.ty":           {Size: 12135, SHA256: "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd"},
	"ind.pubmed.allx":         {GitBlob: "3b86bccf08111c37c632a9dd8ab63db25ea76361"},
	"ind.pubmed.ally":         {Size: 224739, SHA256: "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e"},
	"ind.pubmed.graph":        {Size: 471808, SHA256: "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9"},
	"ind.pubmed.test.index":   {Size: 6000, SHA256: "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5"},
}

var heterophilousSums = map[string]File{
	"roman_empire.npz":   {GitBlob: "1f9bae5e95b28e529015269e98acb237b65d8d3b"},
	"amazon_ratings.npz": {GitBlob: "29647a8b0ff0ef856d73d683a8c3595bd5efbd38"},
	"minesweeper.npz":    {Size: 135045, SHA256: "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3"},
	"tolokers.npz":       {Size: 1329769, SHA256: "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667"},
	"questions.npz":      {GitBlob: "4c7cb65057dbc9771af00fdfdee64a41b3875079"},
}

// The .npz files of the GraphData repository hold the arrays of the gnn-benchmark
// repository under shorter names.
const shchurURL = "https://raw.githubusercontent.com/EdisonLeeeee/GraphData/9df4e769b53b6bf953c4227cda0f8b653ffbb815/datasets/"

var shchurSums = map[string]File{
	"amazon_cs.npz":    {Size: 3407870, SHA256: "bffa1720ee30487a6f10f2ad57741d1a401d89a31a6a4c5c6de1ba42a1f2a0e0"},
	"amazon_photo.npz": {GitBlob: "0fc66eff2f76d10c8d974055fe3209609929b9da"},
	"coauthor_cs.npz":  {GitBlob: "db4211f0860ce83335ea790727652d3b5eb974fa"},
	"coauthor_phy.npz": {Size: 3767567, SHA256: "121a85ee9fac9859693e649d3e9f3561e3a23a9aa4d8e8951e9e3eec8e9b52ef"},
}
