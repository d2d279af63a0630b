"""What a znode is to a client: the ways to create one, its Stat, its ACL, and several changed in one transaction."""

import base64
import hashlib

import pytest
from kazoo.exceptions import (
    BadVersionError,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_acl, make_digest_acl

from support import groups


def test_sequence_suffix_is_the_parents_cversion(client):
    created = [client.create("/job-", sequence=True) for _ in range(2)]
    client.create("/other")
    client.delete(created[0])
    created.append(client.create("/job-", sequence=True, ephemeral=True))
    created.append(client.create("/", sequence=True))

    # A deletion counts on the wire (cversion), but not for the suffix. Of a split point only what the home group has counts for that.
    if groups.IS_ROOT_SPREAD:
        assert created == ["/job-0000000000", "/job-0000000001", "/job-0000000002", "/0000000003"]
    else:
        assert created == ["/job-0000000000", "/job-0000000001", "/job-0000000003", "/0000000004"]
    assert client.get("/")[1].cversion == 6


def test_makepath_creates_parents(client):
    assert client.create("/a/b/c", b"leaf", makepath=True) == "/a/b/c"
    assert client.get("/a/b")[0] == b""
    assert client.get_children("/a/b") == ["c"]


def test_stat_of_a_znodes_life(client):
    path, created = client.create("/node", b"abc", include_data=True)
    assert path == "/node"
    assert created.czxid == created.mzxid == created.pzxid
    assert created.ctime == created.mtime
    assert (created.version, created.cversion, created.aversion) == (0, 0, 0)
    assert (created.dataLength, created.numChildren, created.ephemeralOwner) == (3, 0, 0)

    written = client.set("/node", b"abcdef")
    assert written.version == 1
    assert written.mzxid > written.czxid == created.czxid
    assert written.pzxid == created.pzxid
    assert written.dataLength == 6

    client.create("/node/child")
    client.set_acls("/node", OPEN_ACL_UNSAFE)
    last = client.exists("/node")
    assert (last.version, last.cversion, last.aversion, last.numChildren) == (1, 1, 1, 1)
    assert last.pzxid == client.exists("/node/child").czxid > last.mzxid


def test_children_with_stat(client):
    client.create("/b")
    client.create("/a")
    children, stat = client.get_children("/", include_data=True)
    assert sorted(children) == ["a", "b"]
    assert stat.numChildren == stat.cversion == 2


def test_refusals(client):
    client.create("/node")
    client.create("/node/child")
    client.create("/short", ephemeral=True)

    with pytest.raises(NodeExistsError):
        client.create("/node")
    with pytest.raises(NoNodeError):
        client.create("/missing/child")
    with pytest.raises(NoChildrenForEphemeralsError):
        client.create("/short/child")
    with pytest.raises(NotEmptyError):
        client.delete("/node")
    with pytest.raises(BadVersionError):
        client.set("/node", b"", version=7)
    with pytest.raises(BadVersionError):
        client.delete("/node/child", version=1)
    with pytest.raises(NoNodeError):
        client.get("/missing")
    assert client.exists("/missing") is None


def test_ephemerals_carry_their_owner_and_leave_with_it(client, connect, server, chroot):
    owner = connect(server, chroot)
    owner.create("/mine", ephemeral=True)
    assert client.exists("/mine").ephemeralOwner == owner.client_id[0]

    owner.stop()
    groups.see_all(client)
    assert client.exists("/mine") is None


def test_transaction_applies_all_at_one_zxid(client):
    client.create("/counter", b"1")
    transaction = client.transaction()
    transaction.check("/counter", 0)
    transaction.create("/new", b"x")
    transaction.create("/new/child-", sequence=True)
    transaction.set_data("/counter", b"2")
    transaction.create("/gone")
    transaction.delete("/gone")
    checked, created, child, written, gone, deleted = transaction.commit()

    assert (checked, deleted) == (True, True)
    assert (created, child, gone) == ("/new", "/new/child-0000000000", "/gone")
    assert written.version == 1
    assert client.exists("/new").czxid == client.exists(child).czxid
    if not groups.IS_ROOT_SPREAD:
        assert client.exists("/new").czxid == written.mzxid


@pytest.mark.parametrize("read_only", [False, True])
def test_failed_transaction_changes_nothing(client, read_only):
    client.create("/counter", b"1")
    before = client.exists("/")
    transaction = client.transaction()
    transaction.create("/new")
    transaction.set_data("/counter", b"2")
    if read_only:
        transaction.check("/counter", 5)
        expected = BadVersionError
    else:
        transaction.delete("/missing")
        expected = NoNodeError
    transaction.create("/after")
    results = transaction.commit()

    assert [type(result) for result in results] == [
        RolledBackError,
        RolledBackError,
        expected,
        RuntimeInconsistency,
    ]
    assert client.get("/counter")[0] == b"1"
    assert client.exists("/new") is None
    assert client.exists("/") == before


def test_digest_acl_keeps_strangers_out(client, connect, server, chroot):
    alice = connect(server, chroot, auth_data=[("digest", "alice:secret")])
    alice.create("/private", b"data", acl=CREATOR_ALL_ACL)
    # On the wire an identity is the user and the SHA-1 of "user:password" in base64.
    digest = base64.b64encode(hashlib.sha1(b"alice:secret").digest()).decode()
    acls, stat = alice.get_acls("/private")
    assert [(acl.id.scheme, acl.id.id, acl.perms) for acl in acls] == [("digest", f"alice:{digest}", 31)]
    assert stat.aversion == 0

    for refused in (
        lambda: client.exists("/private"),
        lambda: client.get("/private"),
        lambda: client.set("/private", b""),
        lambda: client.get_children("/private"),
        lambda: client.create("/private/child"),
        lambda: client.set_acls("/private", OPEN_ACL_UNSAFE),
    ):
        with pytest.raises(NoAuthError):
            refused()

    client.add_auth("digest", "alice:secret")
    assert client.get("/private")[0] == b"data"
    assert client.set_acls("/private", OPEN_ACL_UNSAFE, version=0).aversion == 1


def test_each_permission_allows_its_own_operation(client):
    client.create("/readable", b"x", acl=READ_ACL_UNSAFE)
    assert client.get("/readable")[0] == b"x"
    with pytest.raises(NoAuthError):
        client.set("/readable", b"y")
    with pytest.raises(NoAuthError):
        client.create("/readable/child")

    client.create("/parent", acl=[make_acl("world", "anyone", read=True, create=True)])
    client.create("/parent/child")
    with pytest.raises(NoAuthError):
        # To delete is a permission on the parent.
        client.delete("/parent/child")


def test_acls_that_make_no_sense(client):
    with pytest.raises(InvalidACLError):
        client.create("/node", acl=[make_acl("nonsense", "x", all=True)])
    with pytest.raises(InvalidACLError):
        # "auth" stands for the session's identities, and it has none.
        client.create("/node", acl=CREATOR_ALL_ACL)
    client.create("/node")
    with pytest.raises(BadVersionError):
        client.set_acls("/node", [make_digest_acl("a", "b", all=True)], version=3)
    with pytest.raises(InvalidACLError):
        client.set_acls("/node", [])


def test_a_member_of_many_digests(client, connect, server, chroot):
    client.create("/team", acl=[make_digest_acl("a", "1", read=True), make_digest_acl("b", "2", write=True)])
    both = connect(server, chroot, auth_data=[("digest", "a:1"), ("digest", "b:2")])
    both.set("/team", b"x")
    assert both.get("/team")[0] == b"x"
