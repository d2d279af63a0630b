//! Damage to a tree in memory, for the simulator: no command does this.

use crate::Tree;

impl Tree {
    /// Flips a bit of the data of a znode, which has some. No zxid, version, event or statistic tells of it.
    pub fn flip_bit(&mut self, path: &str) {
        let node = self.store.find(path).expect("the znode exists");
        let mut data = self.store.data(node).expect("the znode has data").to_vec();
        data[0] ^= 1;
        self.store.replace_data(node, &data);
    }
}
